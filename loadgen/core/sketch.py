"""Coarse histograms: Sketch, for live progress, and Timeline, with a histogram for each column of
time.

A Sketch is small to send. A Timeline takes memory of constant size: a run has at most COLUMNS
columns, and when it goes on beyond the last one, each two columns become one. Both are merged
exactly: two merged ones equal that of all values.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate, islice
from typing import Self

from msgspec import Struct, field

from loadgen.core.histogram import DAY_NS, Histogram, coarse_lowest, coarse_row

COLUMNS = 256
MIN_WIDTH_NS = 250_000_000  # of a column
# A row is a group of buckets of a `Histogram`, as wide as a bucket of a `Sketch`.
ROWS = coarse_row(DAY_NS) + 1
Cells = dict[int, int]  # counts above 0, by column * ROWS + row
MAX_ERROR = 1 / 32  # relative error of a Sketch's percentile, besides that of the histogram itself


class Sketch(Struct, frozen=True):
    """How often values occurred, ns, to one sixteenth.

    A bucket is a sixteenth of the power of two at or below its lowest value wide, and at least 64
    ns. So its percentiles are within `MAX_ERROR`, plus 32 ns, of those of the histogram that it was
    made from.

    Attributes:
        counts: The number of values in each bucket that is not empty, by its lowest value,
            ascending.
        total_ns: The exact sum of the values.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    total_ns: int = 0

    @classmethod
    def of(cls, histogram: Histogram) -> "Sketch":
        """Return the sketch of a histogram of ns."""
        return cls(histogram.coarse(), histogram.total)

    def __add__(self, other: "Sketch") -> "Sketch":
        lowest = sorted(self.counts.keys() | other.counts.keys())
        counts = {low: self.counts.get(low, 0) + other.counts.get(low, 0) for low in lowest}
        return Sketch(counts, self.total_ns + other.total_ns)

    def __sub__(self, earlier: "Sketch") -> "Sketch":
        """Return the sketch of the values that came after `earlier`, a sketch of the same
        distribution.
        """
        since = {low: count - earlier.counts.get(low, 0) for low, count in self.counts.items()}
        return Sketch(
            {low: count for low, count in since.items() if count}, self.total_ns - earlier.total_ns
        )

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.counts.values())

    @property
    def mean_ms(self) -> float | None:
        """The arithmetic mean from the exact sum; None if there is no value."""
        return self.total_ns / self.count / 1e6 if self.counts else None

    @property
    def p50_ms(self) -> float | None:
        """The median; None if there is no value."""
        return self.percentile_ms(50)

    @property
    def p90_ms(self) -> float | None:
        """The 90th percentile; None if there is no value."""
        return self.percentile_ms(90)

    @property
    def p99_ms(self) -> float | None:
        """The 99th percentile; None if there is no value."""
        return self.percentile_ms(99)

    def percentile_ms(self, p: float) -> float | None:
        """Return the `p`-th percentile, 0 <= `p` <= 100, of the middles of buckets; None if
        there is no value.
        """
        if not self.counts:
            return None
        position = (self.count - 1) * p / 100
        rank = int(position)
        low = self.value_at_rank(rank)
        high = self.value_at_rank(rank + 1)
        return (low + (high - low) * (position - rank)) / 1e6

    def value_at_rank(self, rank: int, /) -> float:
        """Return the middle of the bucket, ns, of the value with this rank in ascending order,
        or of the last value.
        """
        return sum(self.bucket_at_rank(rank)) / 2

    def bucket_at_rank(self, rank: int) -> tuple[int, int]:
        """Return the lowest and the highest value, ns, of the bucket of that value."""
        up_to = list(accumulate(self.counts.values()))
        place = bisect_left(up_to, min(rank + 1, up_to[-1]))
        lowest = next(islice(self.counts, place, None))
        return lowest, coarse_lowest(coarse_row(lowest) + 1) - 1


class Timeline(Struct, frozen=True):
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
        a = self.of_width(width_ns)
        b = other.of_width(width_ns)
        return Timeline(width_ns, _added(a.ttft, b.ttft), _added(a.icl, b.icl))

    def of_width(self, width_ns: int) -> "Timeline":
        """Return the same values in columns of `width_ns`, a multiple of its own by a power of
        two.
        """
        times = width_ns // self.width_ns
        return (
            Timeline(width_ns, _widened(self.ttft, times), _widened(self.icl, times))
            if times > 1
            else self
        )


def width_for(last_ns: int, width_ns: int) -> int:
    """Return the width at which the columns reach `last_ns` after the start: `width_ns` times a
    power of two.
    """
    while last_ns // width_ns >= COLUMNS:
        width_ns *= 2
    return width_ns


def _added(cells: Cells, other: Cells) -> Cells:
    total = Counter(cells)
    total.update(other)
    return dict(total)


def _widened(cells: Cells, times: int) -> Cells:
    """Return the same counts in columns `times` as wide."""
    wide: Counter[int] = Counter()
    for cell, count in cells.items():
        column, row = divmod(cell, ROWS)
        wide[column // times * ROWS + row] += count
    return dict(wide)
