"""Events: all events of an answer one after another, out of the runs in which a record tells
them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from loadgen.core.event_flags import TOKENS
from loadgen.core.record import Record
from loadgen.metrics.records.json_lines import EventRuns


class Event(NamedTuple):
    """One event: what it says, a set of the flags of `loadgen.core.event_flags`, and its stamp,
    CLOCK_MONOTONIC ns.
    """

    says: int
    at_ns: int


def events(record: Record) -> list[Event] | None:
    """All events of a record, in order; None where they were not kept, or not all."""
    return None if record.stream is None else list(_each(record.stream, iter(record.stamps)))


def _each(runs: EventRuns, stamps: Iterator[int]) -> Iterator[Event]:
    for says, value in runs:
        if says & TOKENS:
            yield from (Event(says, next(stamps)) for _ in range(value))
        else:
            yield Event(says, value)
