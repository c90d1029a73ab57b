"""Sketch: a distribution as it is told while a run goes on: coarse counts, small to send, that merge without loss."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from loadgen.core.histogram import Histogram, coarse_lowest, coarse_row

MOST_ERROR = 1 / 32  # of a percentile, beside that of the histogram itself


@dataclass(frozen=True, slots=True)
class Sketch:
    """How often values occurred, ns, to a sixteenth.

    A bucket is a sixteenth of the power of two at or below its lowest value wide, and at least 64 ns. So percentiles
    are within `MOST_ERROR` of those of the histogram that it was made of, and 32 ns.

    Attributes:
        counts: How many values lie in each bucket, by its lowest value, ascending; empty ones are left out.
        total_ns: The sum of the values, exactly.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    total_ns: int = 0

    @classmethod
    def of(cls, histogram: Histogram) -> "Sketch":
        """What a histogram of ns holds by now."""
        return cls(histogram.coarse(), histogram.total)

    def __add__(self, other: "Sketch") -> "Sketch":
        lowest = sorted(self.counts.keys() | other.counts.keys())
        counts = {low: self.counts.get(low, 0) + other.counts.get(low, 0) for low in lowest}
        return Sketch(counts, self.total_ns + other.total_ns)

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.counts.values())

    @property
    def mean_ms(self) -> float | None:
        """The arithmetic mean, from the exact sum; None where there is no value."""
        return self.total_ns / self.count / 1e6 if self.counts else None

    @property
    def p50_ms(self) -> float | None:
        """The median; None where there is no value."""
        return self.percentile_ms(50)

    @property
    def p90_ms(self) -> float | None:
        """See `percentile_ms`."""
        return self.percentile_ms(90)

    @property
    def p99_ms(self) -> float | None:
        """See `percentile_ms`."""
        return self.percentile_ms(99)

    def percentile_ms(self, p: float) -> float | None:
        """The `p`-th percentile, 0 <= `p` <= 100, of the middles of buckets; None where there is no value."""
        if not self.counts:
            return None
        upto, middles = list(accumulate(self.counts.values())), list(map(_middle_ns, self.counts))
        position = (upto[-1] - 1) * p / 100
        rank = int(position)
        low = middles[bisect_left(upto, rank + 1)]
        high = middles[bisect_left(upto, min(rank + 2, upto[-1]))]
        return (low + (high - low) * (position - rank)) / 1e6


def _middle_ns(lowest: int) -> float:
    return (lowest + coarse_lowest(coarse_row(lowest) + 1) - 1) / 2
