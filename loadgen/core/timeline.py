"""Timeline: coarse histograms of latencies, one for each column of time, in memory of constant size.

A run has at most COLUMNS columns. When it goes on beyond the last one, each two columns become one. Merging is exact:
two merged timelines equal the timeline of all values.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Self

from loadgen.core.histogram import DAY_NS, coarse_row

COLUMNS = 256
MIN_WIDTH_NS = 250_000_000  # of a column
# A row is a group of buckets of a `Histogram`, as wide as a bucket of a `Sketch`.
ROWS = coarse_row(DAY_NS) + 1
Cells = dict[int, int]  # counts above 0, by column * ROWS + row


def width_for(last_ns: int, width_ns: int) -> int:
    """Return the width at which the columns reach `last_ns` after the start: `width_ns` times a power of two."""
    while last_ns // width_ns >= COLUMNS:
        width_ns *= 2
    return width_ns


@dataclass(frozen=True)
class Timeline:
    """How often each latency occurred in each column of time.

    Attributes:
        width_ns: The width of a column; the first one begins with the clock.
        ttft: Times to first token of ok requests, by when that token came.
        icl: Gaps between token-bearing events of ok requests, by when they ended.
    """

    width_ns: int
    ttft: Cells
    icl: Cells

    def merge(self, other: Self) -> "Timeline":
        """Return the sum of two timelines; associative and commutative."""
        width_ns = max(self.width_ns, other.width_ns)
        a, b = self.of_width(width_ns), other.of_width(width_ns)
        return Timeline(width_ns, _added(a.ttft, b.ttft), _added(a.icl, b.icl))

    def of_width(self, width_ns: int) -> "Timeline":
        """Return the same values in columns of `width_ns`, a multiple of its own by a power of two."""
        times = width_ns // self.width_ns
        return Timeline(width_ns, _widened(self.ttft, times), _widened(self.icl, times)) if times > 1 else self


def _added(one: Cells, other: Cells) -> Cells:
    total = Counter(one)
    total.update(other)
    return dict(total)


def _widened(cells: Cells, times: int) -> Cells:
    """Return the same counts in columns `times` as wide."""
    wide: Counter[int] = Counter()
    for cell, count in cells.items():
        column, row = divmod(cell, ROWS)
        wide[column // times * ROWS + row] += count
    return dict(wide)
