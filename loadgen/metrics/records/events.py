"""Stream: what all events of an answer said, one after another, and when; only some of them bear tokens."""

import functools
from collections.abc import Sequence

from loadgen.core.event_flags import NAMES, TOKENS

Runs = Sequence[tuple[int, int]]  # as `Record.stream` has them


def from_json(told: Sequence[tuple[str, int]], due: int) -> Runs:
    """The runs of which a line of records tells, with times in ns from `due`.

    Raises:
        KeyError, TypeError, ValueError: It tells of something else.
    """
    runs = ((_flags(name), value) for name, value in told)
    return [(says, value if says & TOKENS else value + due) for says, value in runs]


@functools.lru_cache(1024)
def _flags(named: str) -> int:
    return sum(NAMES[name] for name in named.split("+")) if named else 0
