"""Waiting queue: the sequences that wait to hold KV cache, by priority, and first come, first served within one."""

from collections import OrderedDict
from typing import Generic, Protocol, TypeVar


class Waiting(Protocol):
    """What the queue reads of a sequence.

    Attributes:
        ready_ns: When it may be taken.
        priority: A lower number is taken earlier.
    """

    ready_ns: int
    priority: int


W = TypeVar("W", bound=Waiting)


class WaitingQueue(Generic[W]):
    """A queue for each priority. Sequences of one priority are added in the order in which they are ready."""

    def __init__(self) -> None:
        self._levels: dict[int, OrderedDict[W, None]] = {}  # by priority, ascending; none is empty

    def __len__(self) -> int:
        return sum(map(len, self._levels.values()))

    def __contains__(self, sequence: W) -> bool:
        return sequence in self._levels.get(sequence.priority, ())

    @property
    def next_ready_ns(self) -> int | None:
        """When the first sequence is ready, ns; None if none waits."""
        return min((next(iter(level)).ready_ns for level in self._levels.values()), default=None)

    def add(self, sequence: W, *, first: bool = False) -> None:
        """Queue a sequence, as the last or the first of its priority."""
        if sequence.priority not in self._levels:
            self._levels[sequence.priority] = OrderedDict()
            self._levels = dict(sorted(self._levels.items()))
        level = self._levels[sequence.priority]
        level[sequence] = None
        if first:
            level.move_to_end(sequence, last=False)

    def first(self, now_ns: int) -> W | None:
        """Return the sequence whose turn it is among those that are ready at `now_ns`; None if none is."""
        for level in self._levels.values():
            sequence = next(iter(level))
            if sequence.ready_ns <= now_ns:
                return sequence
        return None

    def remove(self, sequence: W) -> None:
        """Remove a sequence that waits."""
        level = self._levels[sequence.priority]
        del level[sequence]
        if not level:
            del self._levels[sequence.priority]
