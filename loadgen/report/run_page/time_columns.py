"""Time columns: the columns of a timeline, and what is drawn over them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Self

from loadgen.report.html import Curve, Linear
from loadgen.report.result.timeline import Timeline

ALONG = "seconds since the start of the run"
MIN_REQUESTS = 10  # of a column, on average: the rate of fewer is a comb
Numbers = Sequence[float | None]


class TimeColumns:
    """Columns of time.

    Args:
        ends: Where the columns begin and end, s, ascending: one more than there are columns.
        parts: How many columns of the timeline each of these has; the last one may have fewer.
    """

    def __init__(
        self,
        ends: Sequence[float],
        parts: int = 1,
    ) -> None:
        self.ends, self._parts = ends, parts
        self.middles = [(begin + end) / 2 for begin, end in pairwise(ends)]
        self.reach = (ends[1] - ends[0]) / 2  # from the middle of a column to its ends
        self.scale = Linear("s", 0.0, ends[-1])

    @classmethod
    def of(cls, timeline: Timeline) -> Self:
        """Take the columns of a timeline."""
        return cls([timeline.width_s * number for number in range(len(timeline.sent) + 1)])

    def joined(self, requests: int) -> "TimeColumns":
        """Join columns so far that each has MIN_REQUESTS of so many requests on average."""
        parts = -(-len(self.middles) // max(1, requests // MIN_REQUESTS))
        return TimeColumns([*self.ends[:-1:parts], self.ends[-1]], parts)

    def rates(self, counts: Sequence[int]) -> list[float]:
        """Divide counts of the columns of the timeline by the time that they took."""
        sums = (sum(counts[first : first + self._parts]) for first in range(0, len(counts), self._parts))
        return [total / (end - begin) for total, (begin, end) in zip(sums, pairwise(self.ends), strict=True)]

    def steps(self, name: str, values: Numbers, colour: int) -> Curve:
        """Draw what held all along each column."""
        return Curve(name, self.ends, [*values, None], colour, steps=True)

    def points(self, name: str, values: Numbers, colour: int) -> Curve:
        """Draw what was seen in each column."""
        return Curve(name, self.middles, values, colour)
