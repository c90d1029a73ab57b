"""Faults of connections, which end or fall silent before the end of an answer."""

import itertools
from collections.abc import Iterator

from loadgen.engines.sim.http1 import LAST_CHUNK, Request, chunk
from loadgen.testing.faults.fault import FAULTS, Fault, Step, Steps, Together, always, fault
from loadgen.testing.replies import STREAM, GoodAnswer


def first_tokens(request: Request, tokens: int) -> Iterator[bytes]:
    """Yield the steps of a stream up to and including `tokens` tokens."""
    answer = GoodAnswer.to(request)
    yield STREAM
    if answer.role:
        yield chunk(answer.role)
    yield from map(chunk, itertools.islice(itertools.cycle(answer.tokens), tokens))


def good(request: Request, *headers: bytes) -> list[bytes | Step]:
    """Return the steps of a correct answer with additional headers."""
    head = STREAM.removesuffix(b"\r\n") + b"".join(header + b"\r\n" for header in headers) + b"\r\n"
    return [
        head,
        *map(chunk, GoodAnswer.to(request).events(with_usage=request.wants_usage)),
        LAST_CHUNK,
    ]


def after_tokens(name: str, does: str, end: Step) -> None:
    """Add a fault that sends NUMBER tokens, and then ends an answer in this way."""
    FAULTS[name] = Fault(
        name, does, 2, lambda request, tokens: itertools.chain(first_tokens(request, tokens), [end])
    )


@fault
def none(request: Request) -> Steps:
    """Answers well: the requested number of tokens, each in its own event and write."""
    return good(request)


always("reset", "Resets the connection before any byte of a response.", Step.RESET)
always("close", "Closes the connection before any byte of a response.", Step.CLOSE)
always("silence", "Never says anything.", Step.SILENCE)
always("headers-silence", "Sends the headers, and falls silent.", STREAM, Step.SILENCE)
after_tokens("stall", "Falls silent after NUMBER tokens.", Step.SILENCE)
always("cut-head", "Closes the connection inside the headers.", STREAM[:30], Step.CLOSE)
after_tokens(
    "eof", "Closes the connection after NUMBER tokens, before the finish reason.", Step.CLOSE
)


@fault
def eof_before_done(request: Request) -> Steps:
    """Closes the connection after the finish reason, before [DONE]."""
    return [
        *first_tokens(request, request.tokens),
        chunk(GoodAnswer.to(request).finish),
        Step.CLOSE,
    ]


after_tokens("rst", "Resets the connection after NUMBER tokens.", Step.RESET)


@fault
def rst_together(request: Request, count: int = 100) -> Steps:
    """Sends one token, and resets NUMBER such connections at once when there are as many."""
    return [*first_tokens(request, 1), Together(count), Step.RESET]


@fault
def connection_close(request: Request) -> Steps:
    """Says that it closes the connection, which it does."""
    return [*good(request, b"Connection: close"), Step.CLOSE]


@fault
def keep_alive(request: Request, seconds: int = 1) -> Steps:
    """Says that it keeps the connection for NUMBER seconds."""
    return good(request, b"Keep-Alive: timeout=%d" % seconds)


@fault
def close_after(request: Request) -> Steps:
    """Promises to keep the connection, and closes it."""
    return [*good(request), Step.CLOSE]


@fault
def close_on_reuse(request: Request) -> Steps:
    """Closes the connection as its next request arrives."""
    return [*good(request), Step.NEXT_REQUEST, Step.CLOSE]


@fault
def after_end(request: Request) -> Steps:
    """Sends a second, unrequested response with the end of it."""
    return [
        *good(request)[:-1],
        LAST_CHUNK + b"HTTP/1.1 500 Unrequested\r\nContent-Length: 0\r\n\r\n",
    ]
