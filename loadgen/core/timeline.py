"""Timeline: coarse histograms of latencies, one for each column of time, in memory of constant size.

A run has at most COLUMNS columns. When it goes on beyond the last one, each two columns become one. Merging is exact:
two merged timelines equal the timeline of all values.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from loadgen.core.histogram import DAY_NS, coarse_row
from loadgen.util.arrays import Int64s

COLUMNS = 256
MIN_WIDTH_NS = 250_000_000  # of a column
# A row is a group of buckets of a `Histogram`, as wide as a bucket of a `Sketch`.
ROWS = coarse_row(DAY_NS) + 1


def width_for(last_ns: int, width_ns: int) -> int:
    """Return the width at which the columns reach `last_ns` after the start: `width_ns` times a power of two."""
    while last_ns // width_ns >= COLUMNS:
        width_ns *= 2
    return width_ns


def empty() -> Int64s:
    """Return counts of 0; shape (COLUMNS, ROWS)."""
    return np.zeros((COLUMNS, ROWS), dtype=np.int64)


def widened(counts: Int64s, times: int) -> Int64s:
    """Return the same counts in columns `times` as wide."""
    wide = empty()
    joined = np.add.reduceat(counts, range(0, COLUMNS, times), axis=0)
    wide[: len(joined)] = joined
    return wide


@dataclass(frozen=True, eq=False)
class Timeline:
    """How often each latency occurred in each column of time.

    Attributes:
        width_ns: The width of a column; the first one begins with the clock.
        ttft: Times to first token of ok requests, by when that token came; shape (COLUMNS, ROWS).
        icl: Gaps between token-bearing events of ok requests, by when they ended; shape (COLUMNS, ROWS).
    """

    width_ns: int
    ttft: Int64s
    icl: Int64s

    def merge(self, other: Self) -> "Timeline":
        """Return the sum of two timelines; associative and commutative."""
        width_ns = max(self.width_ns, other.width_ns)
        a, b = self.of_width(width_ns), other.of_width(width_ns)
        return Timeline(width_ns, a.ttft + b.ttft, a.icl + b.icl)

    def of_width(self, width_ns: int) -> "Timeline":
        """Return the same counts in columns of `width_ns`, a power of two times the width; never narrower ones."""
        times = width_ns // self.width_ns
        return Timeline(width_ns, widened(self.ttft, times), widened(self.icl, times)) if times > 1 else self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Timeline):
            return NotImplemented
        same_counts = np.array_equal(self.ttft, other.ttft) and np.array_equal(self.icl, other.icl)
        return self.width_ns == other.width_ns and same_counts

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_cells, (self.width_ns, _cells(self.ttft), _cells(self.icl))  # most counts are 0


def _cells(counts: Int64s) -> tuple[Int64s, Int64s]:
    """Return the flat indices of the counts above 0, and these counts."""
    indices = np.flatnonzero(counts)
    return indices, counts.flat[indices]


def _from_cells(width_ns: int, ttft: tuple[Int64s, Int64s], icl: tuple[Int64s, Int64s]) -> Timeline:
    timeline = Timeline(width_ns, empty(), empty())
    for counts, (indices, values) in ((timeline.ttft, ttft), (timeline.icl, icl)):
        counts.flat[indices] = values
    return timeline
