"""Faults of connections, which end or fall silent before the end of an answer."""

from loadgen.testing.faults.fault import Step, Steps, Together, fault
from loadgen.testing.good_answer import GoodAnswer
from loadgen.testing.replies import LAST_CHUNK, STREAM, chunk
from loadgen.testing.request import Request


def first_tokens(request: Request, tokens: int) -> Steps:
    """Return the steps of a stream up to and including `tokens` tokens."""
    answer = GoodAnswer.to(request)
    yield STREAM
    if answer.role:
        yield chunk(answer.role)
    for number in range(tokens):
        yield chunk(answer.tokens[number % len(answer.tokens)])


def good(request: Request, *headers: bytes) -> Steps:
    """Return the steps of a correct answer with additional headers."""
    yield STREAM.removesuffix(b"\r\n") + b"".join(header + b"\r\n" for header in headers) + b"\r\n"
    for event in GoodAnswer.to(request).events(with_usage=request.wants_usage):
        yield chunk(event)
    yield LAST_CHUNK


@fault
def none(request: Request) -> Steps:
    """Answers well: the requested number of tokens, each in its own event and write."""
    yield from good(request)


@fault
def reset(request: Request) -> Steps:
    """Resets the connection before any byte of a response."""
    yield Step.RESET


@fault
def close(request: Request) -> Steps:
    """Closes the connection before any byte of a response."""
    yield Step.CLOSE


@fault
def silence(request: Request) -> Steps:
    """Never says anything."""
    yield Step.SILENCE


@fault
def headers_silence(request: Request) -> Steps:
    """Sends the headers, and falls silent."""
    yield STREAM
    yield Step.SILENCE


@fault
def stall(request: Request, tokens: int = 2) -> Steps:
    """Falls silent after NUMBER tokens."""
    yield from first_tokens(request, tokens)
    yield Step.SILENCE


@fault
def cut_head(request: Request) -> Steps:
    """Closes the connection inside the headers."""
    yield STREAM[:30]
    yield Step.CLOSE


@fault
def eof(request: Request, tokens: int = 2) -> Steps:
    """Closes the connection after NUMBER tokens, before the finish reason."""
    yield from first_tokens(request, tokens)
    yield Step.CLOSE


@fault
def eof_before_done(request: Request) -> Steps:
    """Closes the connection after the finish reason, before [DONE]."""
    yield from first_tokens(request, request.tokens)
    yield chunk(GoodAnswer.to(request).finish)
    yield Step.CLOSE


@fault
def rst(request: Request, tokens: int = 2) -> Steps:
    """Resets the connection after NUMBER tokens."""
    yield from first_tokens(request, tokens)
    yield Step.RESET


@fault
def rst_together(request: Request, count: int = 100) -> Steps:
    """Sends one token, and resets NUMBER such connections at once when there are as many."""
    yield from first_tokens(request, 1)
    yield Together(count)
    yield Step.RESET


@fault
def connection_close(request: Request) -> Steps:
    """Answers well, and says that it closes the connection, which it does."""
    yield from good(request, b"Connection: close")
    yield Step.CLOSE


@fault
def keep_alive(request: Request, seconds: int = 1) -> Steps:
    """Answers well, and says that it keeps the connection for NUMBER seconds."""
    yield from good(request, b"Keep-Alive: timeout=%d" % seconds)


@fault
def close_after(request: Request) -> Steps:
    """Answers well, promises to keep the connection, and closes it."""
    yield from good(request)
    yield Step.CLOSE


@fault
def close_on_reuse(request: Request) -> Steps:
    """Answers well, and closes the connection as its next request arrives."""
    yield from good(request)
    yield Step.NEXT_REQUEST
    yield Step.CLOSE


@fault
def after_end(request: Request) -> Steps:
    """Answers well, and sends a second, unrequested response with the end of it."""
    *steps, last = good(request)
    yield from steps
    assert isinstance(last, bytes)
    yield last + b"HTTP/1.1 500 Unrequested\r\nContent-Length: 0\r\n\r\n"
