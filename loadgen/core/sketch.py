"""Sketch: a coarse histogram for live progress, small to send and mergeable without loss."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, islice

from loadgen.core.histogram import Histogram, coarse_lowest, coarse_row

MAX_ERROR = 1 / 32  # relative error of a percentile, besides that of the histogram itself


@dataclass(frozen=True, slots=True)
class Sketch:
    """How often values occurred, ns, to one sixteenth.

    A bucket is a sixteenth of the power of two at or below its lowest value wide, and at least 64 ns. So its
    percentiles are within `MAX_ERROR`, plus 32 ns, of those of the histogram that it was made from.

    Attributes:
        counts: The number of values in each bucket that is not empty, by its lowest value, ascending.
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
        """Return the sketch of the values that came after `earlier`, a sketch of the same distribution."""
        since = {low: count - earlier.counts.get(low, 0) for low, count in self.counts.items()}
        return Sketch({low: count for low, count in since.items() if count}, self.total_ns - earlier.total_ns)

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
        """Return the `p`-th percentile, 0 <= `p` <= 100, of the middles of buckets; None if there is no value."""
        if not self.counts:
            return None
        position = (self.count - 1) * p / 100
        rank = int(position)
        low, high = self.value_at_rank(rank), self.value_at_rank(rank + 1)
        return (low + (high - low) * (position - rank)) / 1e6

    def value_at_rank(self, rank: int, /) -> float:
        """Return the middle of the bucket, ns, of the value with this rank in ascending order, or of the last value."""
        return sum(self.bucket_at_rank(rank)) / 2

    def bucket_at_rank(self, rank: int) -> tuple[int, int]:
        """Return the lowest and the highest value, ns, of the bucket of that value."""
        up_to = list(accumulate(self.counts.values()))
        place = bisect_left(up_to, min(rank + 1, up_to[-1]))
        lowest = next(islice(self.counts, place, None))
        return lowest, _highest_ns(lowest)


def _highest_ns(lowest: int) -> int:
    return coarse_lowest(coarse_row(lowest) + 1) - 1
