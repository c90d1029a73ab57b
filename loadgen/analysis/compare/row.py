"""Row: one metric of a baseline and a candidate, their difference, and the conclusion about it."""

import math
from dataclasses import dataclass
from enum import StrEnum

from loadgen.analysis.compare.confidence_interval import ConfidenceInterval
from loadgen.analysis.compare.metrics import Metric

MAX_EXPONENT = 700.0  # above it the exponential overflows


class Conclusion(StrEnum):
    """The conclusion about a difference."""

    BETTER = "better"  # significant after correction for all rows that are tested
    WORSE = "worse"  # the same
    MAYBE = "maybe"  # significant by its own interval only
    NO_SIGNIFICANT_DIFFERENCE = "no significant difference"
    UNKNOWN = "-"  # there is no interval


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of both sides.

    Attributes:
        metric: That is compared.
        baseline: Value of the baseline: the geometric mean of its starts, for shares the arithmetic mean.
        candidate: Value of the candidate.
        change: Relative difference of the candidate; for shares the difference. None if only the baseline is 0.
        resolution: Width of the range in which a true value lies, as a share of it; 0 if values are exact.
        interval: The interval of the difference of scaled values; None if unknown.
        why_no_interval: Why it is unknown; empty if it is known.
        conclusion: About the difference.
    """

    metric: Metric
    baseline: float
    candidate: float
    change: float | None
    resolution: float
    interval: ConfidenceInterval | None
    why_no_interval: str
    conclusion: Conclusion = Conclusion.UNKNOWN

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Confidence bounds of `change`."""
        if self.interval is None:
            return None
        low, high = as_change(self.interval.low, self.metric), as_change(self.interval.high, self.metric)
        return (max(low, -1.0), min(high, 1.0)) if self.metric.is_share else (low, high)


def as_change(difference: float, metric: Metric) -> float:
    """Convert a difference of scaled values to a change; infinite if it overflows."""
    if metric.is_share:
        return difference
    return math.expm1(difference) if difference < MAX_EXPONENT else math.inf
