"""Delta: how far one number is from another, how sure that is, and how both are written."""

import math
from dataclasses import dataclass

from loadgen.report.html import Span, Tone
from loadgen.stats.group_sequential import Comparison
from loadgen.tuning.spec.objective import MetricName
from loadgen.util.number_format import signed

# What the metrics are called above numbers.
LABELS: dict[MetricName, str] = {
    "total_tps_per_box": "Total TPS",
    "output_tps_per_gpu": "Output TPS per device",
    "goodput": "Goodput",
    "e2e_p50": "Median E2EL",
    "cost_per_mtok": "Cost",
}
DIGITS = 2  # of percentages
ESTIMATED = " (est.)"  # behind a number that was scaled to the whole box


@dataclass(frozen=True, slots=True)
class Delta:
    """A value beside another.

    Attributes:
        share: By how much it is more, as a share of the other; computed from unrounded values.
        low: It is no less than this, with the confidence of the study; None where nothing tells.
        high: It is no more than this, likewise.
        more_is_better: What is a gain.
        single: Whether each was measured once, so that nothing can tell how sure it is.
    """

    share: float
    low: float | None
    high: float | None
    more_is_better: bool
    single: bool = False

    @classmethod
    def compared(cls, comparison: Comparison, *, more_is_better: bool) -> "Delta | None":
        """Of a comparison, whose effect is a gain, whatever the direction; None where it has not begun."""
        if not comparison.blocks:
            return None
        change = comparison if more_is_better else comparison.inverted
        told = math.isfinite(change.high) and change.low > -1.0
        ends: tuple[float | None, float | None] = (change.low, change.high) if told else (None, None)
        return cls(change.effect, *ends, more_is_better)

    @classmethod
    def of_runs_apart(cls, value: float, other: float, *, more_is_better: bool, single: bool) -> "Delta":
        """Of values that were not measured beside each other, or only once."""
        return cls(value / other - 1, None, None, more_is_better, single)

    @property
    def tone(self) -> Tone:
        """A gain or a loss, where that is as sure as it can be said to be; else neither."""
        ends = (self.share, self.share) if self.low is None or self.high is None else (self.low, self.high)
        if self.low is None and not self.single:
            return Tone.QUIET
        if min(ends) > 0:
            return Tone.GOOD if self.more_is_better else Tone.BAD
        if max(ends) < 0:
            return Tone.BAD if self.more_is_better else Tone.GOOD
        return Tone.QUIET

    @property
    def bounds(self) -> str:
        """How sure it is, in words."""
        if self.single:
            return "single runs"
        if self.low is None or self.high is None:
            return "not told yet"
        return f"{signed(self.low, DIGITS)} to {signed(self.high, DIGITS)}"

    def __str__(self) -> str:
        return f"{signed(self.share, DIGITS)} ({self.bounds})"

    @property
    def span(self) -> Span:
        """As it stands in a line."""
        return Span(f"({signed(self.share, DIGITS)}; {self.bounds})", self.tone)


def beside(delta: Delta | None, *, counts: bool = True) -> tuple[str | Span, ...]:
    """What follows the number that a difference is of; without a colour where it does not count."""
    return () if delta is None else (" ", delta.span if counts else Span(delta.span.text, Tone.QUIET))


def fixed(value: float | None, unit: str = "") -> str:
    """A number with two digits after the point, and its unit: "6595.66 tok/s"; n/a where there is none."""
    return "n/a" if value is None else f"{value:.2f} {unit}".rstrip()
