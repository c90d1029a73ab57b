"""Row: a metric of two sides, what they differ by, and the word that may be said of it."""

import math
from dataclasses import dataclass
from enum import StrEnum

from loadgen.analysis.compare.interval import Interval
from loadgen.analysis.compare.metrics import Metric

MOST = 700.0  # of which the exponential is a number


class Word(StrEnum):
    """What may be said of a difference."""

    BETTER = "better"  # allowing for all rows that are looked at
    WORSE = "worse"  # likewise
    DIFFERS = "differs"  # by the interval of its row alone
    NOT_TOLD_APART = "not told apart"
    UNKNOWN = "-"  # nothing tells


@dataclass(frozen=True, slots=True)
class Row:
    """A metric of two sides.

    Attributes:
        metric: Which.
        one: The baseline's value: of several starts the geometric mean, of shares the mean.
        other: The other side's.
        change: By how much that is more, as a share of the baseline's; of shares the difference. None beside a 0.
        resolution: How finely the values are told, as a share of them; 0 where they are exact.
        interval: Of the difference of levels; None where nothing tells.
        why: Why nothing does.
        word: What may be said.
    """

    metric: Metric
    one: float
    other: float
    change: float | None
    resolution: float
    interval: Interval | None
    why: str
    word: Word = Word.UNKNOWN

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between what the change lies, in its unit."""
        if self.interval is None:
            return None
        low, high = change(self.interval.low, self.metric), change(self.interval.high, self.metric)
        return (max(low, -1.0), min(high, 1.0)) if self.metric.is_share else (low, high)


def change(difference: float, metric: Metric) -> float:
    """A difference of levels as it is told; infinite where it is beyond all numbers."""
    if metric.is_share:
        return difference
    return math.expm1(difference) if difference < MOST else math.inf
