"""Bytes for the wire: responses cut anywhere, and what was read of them."""

from collections.abc import Iterable

from loadgen.core.http1 import Response
from loadgen.core.record import Record
from loadgen.testing.replies import DONE, HEAD, answer, chunked, delta, event, streamed, usage
from tests.helpers.stream_events import events

__all__ = [
    "DONE",
    "HEAD",
    "answer",
    "chunked",
    "delta",
    "event",
    "facts",
    "read",
    "slices",
    "streamed",
    "usage",
]


def slices(data: bytes, step: int) -> list[bytes]:
    return [data[i : i + step] for i in range(0, len(data), step)]


def read(
    parts: Iterable[bytes], *, closed: bool = False, error: str | None = None
) -> tuple[Response, Record]:
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
        [event.says for event in events(record) or ()],
    )
