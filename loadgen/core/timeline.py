"""Timeline: coarse histograms of what was measured, one for each stretch of a run, in memory of constant size.

A run has at most COLUMNS stretches: where one goes on beyond the last of them, each two become one. Merging is exact:
the whole of two parts is what their values together would have given.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from loadgen.core.histogram import DAY_NS, coarse_row
from loadgen.util.arrays import Int64s

COLUMNS = 256
SHORTEST_NS = 250_000_000
# A row is a group of a `Histogram`'s buckets, as wide as a bucket of a `Sketch`.
ROWS = coarse_row(DAY_NS) + 1


def width_for(last_ns: int, width_ns: int) -> int:
    """How wide columns of `width_ns` have to become to reach `last_ns` after the start: times a power of two."""
    while last_ns // width_ns >= COLUMNS:
        width_ns *= 2
    return width_ns


def empty() -> Int64s:
    """Counts of nothing."""
    return np.zeros((COLUMNS, ROWS), dtype=np.int64)


def widened(counts: Int64s, times: int) -> Int64s:
    """The same counts, in columns so many times as wide."""
    wide = empty()
    joined = np.add.reduceat(counts, range(0, COLUMNS, times), axis=0)
    wide[: len(joined)] = joined
    return wide


@dataclass(frozen=True, eq=False)
class Timeline:
    """How often each value occurred, by when it did.

    Attributes:
        width_ns: Of a column; the first one begins with the clock.
        ttft: Of ok requests by when their first token came; shape (COLUMNS, ROWS).
        icl: Gaps between token-bearing events of ok requests, by when they ended; the same shape.
    """

    width_ns: int
    ttft: Int64s
    icl: Int64s

    def merge(self, other: Self) -> "Timeline":
        """The whole of two parts; associative and commutative."""
        width_ns = max(self.width_ns, other.width_ns)
        a, b = self.of_width(width_ns), other.of_width(width_ns)
        return Timeline(width_ns, a.ttft + b.ttft, a.icl + b.icl)

    def of_width(self, width_ns: int) -> "Timeline":
        """The same with columns as wide as that, or wider as it is; a power of two times as wide."""
        times = width_ns // self.width_ns
        return Timeline(width_ns, widened(self.ttft, times), widened(self.icl, times)) if times > 1 else self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Timeline):
            return NotImplemented
        alike = np.array_equal(self.ttft, other.ttft) and np.array_equal(self.icl, other.icl)
        return self.width_ns == other.width_ns and alike

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_cells, (self.width_ns, _cells(self.ttft), _cells(self.icl))  # most counts are 0


def _cells(counts: Int64s) -> tuple[Int64s, Int64s]:
    """Where there are any, counted row after row, and how many."""
    there = np.flatnonzero(counts)
    return there, counts.flat[there]


def _of_cells(width_ns: int, ttft: tuple[Int64s, Int64s], icl: tuple[Int64s, Int64s]) -> Timeline:
    made = Timeline(width_ns, empty(), empty())
    for counts, (there, values) in ((made.ttft, ttft), (made.icl, icl)):
        counts.flat[there] = values
    return made
