"""Stream: what all events of an answer said, one after another, and when; only some of them bear tokens."""

import functools
from collections.abc import Sequence

from loadgen.deltas import (
    CHOICE,
    CONTENT,
    DONE,
    EMPTY,
    FINISH,
    OLD_REASONING,
    OTHER,
    REASONING,
    ROLE,
    TOKENS,
    TOOL,
    USAGE,
)
from loadgen.wire import Record

NAMES = {
    "content": CONTENT,
    "reasoning": REASONING,
    "other": OTHER,
    "choice": CHOICE,
    "role": ROLE,
    "empty": EMPTY,
    "finish": FINISH,
    "usage": USAGE,
    "reasoning_content": OLD_REASONING,
    "tool": TOOL,
    "done": DONE,
}
Runs = Sequence[tuple[int, int]]  # as `Record.stream` has them


def runs_of(record: Record) -> Runs | None:
    """The runs of a record's stream; None where they were not kept, or not of all events."""
    stream = record.stream
    if stream is None or sum(count for says, count in stream if says & TOKENS) != record.events:
        return None
    return stream


def to_json(stream: Runs | None, due: int) -> list[list[str | int]] | None:
    """The runs of a record's stream with names for flags, and times in ns from `due`."""
    if stream is None:
        return None
    return [[_named(says), value if says & TOKENS else value - due] for says, value in stream]


def from_json(told: Sequence[tuple[str, int]], due: int) -> Runs:
    """The runs of which `to_json` made `told`.

    Raises:
        KeyError, TypeError, ValueError: It made something else.
    """
    runs = ((_flags(name), value) for name, value in told)
    return [(says, value if says & TOKENS else value + due) for says, value in runs]


@functools.cache
def _named(says: int) -> str:
    return "+".join(name for name, flag in NAMES.items() if says & flag)


@functools.lru_cache(1024)
def _flags(named: str) -> int:
    return sum(NAMES[name] for name in named.split("+")) if named else 0
