"""The difference of a value from a reference, with its bounds."""

import math
from dataclasses import dataclass

from loadgen.stats.group_sequential import Comparison
from loadgen.util.number_format import signed


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of a value from the reference's, as a share of the latter.

    Attributes:
        share: Difference of the unrounded values.
        low: Lower bound at the study's confidence; None: unknown.
        high: Upper bound at the study's confidence; None: unknown.
        more_is_better: Whether an increase is a gain.
        single: Whether both were measured once, so that bounds do not exist.
    """

    share: float
    low: float | None
    high: float | None
    more_is_better: bool
    single: bool = False

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, more_is_better: bool) -> "Difference | None":
        """Convert a comparison of gains; None if it has no blocks."""
        if not comparison.blocks:
            return None
        change = comparison if more_is_better else comparison.inverted
        low = change.low if change.low > -1.0 else None
        high = change.high if math.isfinite(change.high) else None
        return cls(change.effect, low, high, more_is_better)

    @classmethod
    def without_bounds(cls, value: float, other: float, *, more_is_better: bool, single: bool) -> "Difference":
        """Compare values that were not measured side by side, or only once."""
        return cls(value / other - 1, None, None, more_is_better, single)

    @property
    def direction(self) -> int:
        """1 for a gain, -1 for a loss, 0 if the bounds allow both; without bounds only single runs have a sign."""
        low, high = (self.share, self.share) if self.single else (self.low, self.high)
        if low is None or high is None or low <= 0 <= high:
            return 0
        return 1 if (low > 0) == self.more_is_better else -1

    def bounds(self, digits: int) -> str:
        """Return the bounds in words: "+1.0% to +2.0%"."""
        if self.single:
            return "single runs"
        if self.low is None and self.high is None:
            return "no bounds yet"
        low, high = ("..." if bound is None else signed(bound, digits) for bound in (self.low, self.high))
        return f"{low} to {high}"

    def text(self, digits: int = 2) -> str:
        """Return difference and bounds: "+1.50% (+1.00% to +2.00%)"."""
        return f"{signed(self.share, digits)} ({self.bounds(digits)})"
