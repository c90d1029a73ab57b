"""Faults of connections: they end, or fall silent, where no answer should."""

from loadgen.testing.answer import Answer
from loadgen.testing.ask import Ask
from loadgen.testing.faults.fault import Step, Steps, Together, fault
from loadgen.testing.replies import LAST_CHUNK, STREAM, chunk


def begun(ask: Ask, tokens: int) -> Steps:
    """A stream up to and including so many tokens."""
    answer = Answer.to(ask)
    yield STREAM
    if answer.role:
        yield chunk(answer.role)
    for number in range(tokens):
        yield chunk(answer.tokens[number % len(answer.tokens)])


def good(ask: Ask, *headers: bytes) -> Steps:
    """A good answer with further headers."""
    yield STREAM.removesuffix(b"\r\n") + b"".join(header + b"\r\n" for header in headers) + b"\r\n"
    for event in Answer.to(ask).events(with_usage=ask.wants_usage):
        yield chunk(event)
    yield LAST_CHUNK


@fault
def none(ask: Ask) -> Steps:
    """Answers well: as many tokens as were asked for, an event and a write each."""
    yield from good(ask)


@fault
def reset(ask: Ask) -> Steps:
    """Resets the connection before any byte of a response."""
    yield Step.RESET


@fault
def close(ask: Ask) -> Steps:
    """Closes the connection before any byte of a response."""
    yield Step.CLOSE


@fault
def silence(ask: Ask) -> Steps:
    """Never says anything."""
    yield Step.SILENCE


@fault
def headers_silence(ask: Ask) -> Steps:
    """Sends the headers, and falls silent."""
    yield STREAM
    yield Step.SILENCE


@fault
def stall(ask: Ask, tokens: int = 2) -> Steps:
    """Falls silent after NUMBER tokens."""
    yield from begun(ask, tokens)
    yield Step.SILENCE


@fault
def cut_head(ask: Ask) -> Steps:
    """Closes the connection inside the headers."""
    yield STREAM[:30]
    yield Step.CLOSE


@fault
def eof(ask: Ask, tokens: int = 2) -> Steps:
    """Closes the connection after NUMBER tokens, before the finish reason."""
    yield from begun(ask, tokens)
    yield Step.CLOSE


@fault
def eof_before_done(ask: Ask) -> Steps:
    """Closes the connection after the finish reason, before [DONE]."""
    yield from begun(ask, ask.tokens)
    yield chunk(Answer.to(ask).finish)
    yield Step.CLOSE


@fault
def rst(ask: Ask, tokens: int = 2) -> Steps:
    """Resets the connection after NUMBER tokens."""
    yield from begun(ask, tokens)
    yield Step.RESET


@fault
def rst_together(ask: Ask, count: int = 100) -> Steps:
    """Sends one token, and resets NUMBER such connections at once when there are as many."""
    yield from begun(ask, 1)
    yield Together(count)
    yield Step.RESET


@fault
def connection_close(ask: Ask) -> Steps:
    """Answers well, and says that it closes the connection, which it does."""
    yield from good(ask, b"Connection: close")
    yield Step.CLOSE


@fault
def keep_alive(ask: Ask, seconds: int = 1) -> Steps:
    """Answers well, and says that it keeps the connection for NUMBER seconds."""
    yield from good(ask, b"Keep-Alive: timeout=%d" % seconds)


@fault
def close_after(ask: Ask) -> Steps:
    """Answers well, promises to keep the connection, and closes it."""
    yield from good(ask)
    yield Step.CLOSE


@fault
def close_on_reuse(ask: Ask) -> Steps:
    """Answers well, and closes the connection as its next request arrives."""
    yield from good(ask)
    yield Step.NEXT_REQUEST
    yield Step.CLOSE


@fault
def after_end(ask: Ask) -> Steps:
    """Answers well, and sends a response that nobody asked for with the end of it."""
    *steps, last = good(ask)
    yield from steps
    assert isinstance(last, bytes)
    yield last + b"HTTP/1.1 500 Nobody Asked\r\nContent-Length: 0\r\n\r\n"
