"""Bytes for the wire: responses built by hand, cut anywhere."""

from collections.abc import Iterable

import orjson

from loadgen.wire import Record, Response

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
DONE = b"data: [DONE]\n\n"


def event(**fields: object) -> bytes:
    return b"data: " + orjson.dumps(fields) + b"\n\n"


def delta(finish_reason: str | None = None, **fields: object) -> bytes:
    return event(id="x", choices=[{"index": 0, "delta": fields, "finish_reason": finish_reason}])


def usage(**counts: object) -> bytes:
    return event(id="x", choices=[], usage=counts)


def answer(*words: str, finish: str = "stop") -> bytes:
    return delta(role="assistant", content="") + b"".join(delta(content=word) for word in words) + delta(finish) + DONE


def chunked(body: bytes, size: int = 100) -> bytes:
    cuts = (body[i : i + size] for i in range(0, len(body), size))
    return b"".join(b"%x\r\n%s\r\n" % (len(cut), cut) for cut in cuts) + b"0\r\n\r\n"


def streamed(body: bytes, size: int = 100) -> bytes:
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(body, size)


def slices(data: bytes, step: int) -> list[bytes]:
    return [data[i : i + step] for i in range(0, len(data), step)]


def read(parts: Iterable[bytes], *, closed: bool = False, error: str | None = None) -> tuple[Response, Record]:
    """Feed parts, the n-th of which arrives at n ms; then end the connection if asked."""
    response, record = Response(), Record(due=1)
    response.begin(record)
    at_ns = 0
    for part in parts:
        at_ns += 1_000_000
        response.feed(part, at_ns)
    if closed and not response.complete:
        response.eof(at_ns + 1_000_000, error)
    return response, record


def facts(record: Record) -> tuple[object, ...]:
    """What a response said, without when."""
    return (
        record.outcome,
        record.status,
        record.events,
        record.content_events,
        record.reasoning_events,
        record.other_events,
        record.finish_reason,
        record.prompt_tokens,
        record.completion_tokens,
        record.cached_tokens,
        record.done_seen,
    )
