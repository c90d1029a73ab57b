"""The difference of a value from a reference, with its bounds."""

import math
from dataclasses import dataclass
from enum import StrEnum

from loadgen.stats.group_sequential import Comparison
from loadgen.util.number_format import signed


class Unbounded(StrEnum):
    """Why a difference has no bounds."""

    SINGLE_RUNS = "single runs"
    FEW_BLOCKS = "too few blocks for bounds"
    DISTURBED = "too few undisturbed starts for bounds"
    APART = "not measured in the same blocks"


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of a value from the reference's, as a share of the latter.

    Attributes:
        share: Difference of the unrounded values.
        low: Lower bound at the study's confidence; None: unknown.
        high: Upper bound at the study's confidence; None: unknown.
        more_is_better: Whether an increase is a gain.
        unbounded: Why there are no bounds; None: there are some.
        other_work: How the work of the two differed; empty: they did the same.
    """

    share: float
    low: float | None
    high: float | None
    more_is_better: bool
    unbounded: Unbounded | None = None
    other_work: str = ""

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, more_is_better: bool) -> "Difference | None":
        """Convert a comparison of gains; None if it has no blocks."""
        if not comparison.blocks:
            return None
        change = comparison if more_is_better else comparison.inverted
        low = change.low if change.low > -1.0 else None
        high = change.high if math.isfinite(change.high) else None
        # A comparison in blocks has bounds, unless its blocks were disturbed too often.
        unbounded = Unbounded.DISTURBED if low is None and high is None else None
        return cls(change.effect, low, high, more_is_better, unbounded)

    @classmethod
    def without_bounds(cls, value: float, other: float, why: Unbounded, *, more_is_better: bool) -> "Difference":
        """Compare values that have no bounds, and say why."""
        return cls(value / other - 1, None, None, more_is_better, why)

    @property
    def direction(self) -> int:
        """1 for a gain, -1 for a loss, 0 if it may be either; without bounds only single runs of the same work tell."""
        is_single = self.unbounded is Unbounded.SINGLE_RUNS and not self.other_work
        low, high = (self.share, self.share) if is_single else (self.low, self.high)
        if low is not None and low > 0:
            return 1 if self.more_is_better else -1
        if high is not None and high < 0:
            return -1 if self.more_is_better else 1
        return 0

    def bounds(self, digits: int) -> str:
        """Return the bounds in words: "+1.0% to +2.0%"."""
        low, high = ("..." if bound is None else signed(bound, digits) for bound in (self.low, self.high))
        bounds = self.unbounded or f"{low} to {high}"
        return f"{bounds}; {self.other_work}" if self.other_work else bounds

    def text(self, digits: int = 2) -> str:
        """Return difference and bounds: "+1.50% (+1.00% to +2.00%)"."""
        return f"{signed(self.share, digits)} ({self.bounds(digits)})"
