"""Distribution: weighted values, with the two definitions of a percentile that tools use."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loadgen.util.arrays import Floats


@dataclass(frozen=True, eq=False)
class Distribution:
    """Values with weights. A statistic of an empty distribution is None.

    Attributes:
        values: Shape (n,).
        weights: How many times each value counts, shape (n,), whole numbers unless `steps`; None:
            once.
        steps: Whether percentiles are values of the distribution, else they are interpolated as
            numpy does.
    """

    values: Floats
    weights: Floats | None = None
    steps: bool = False

    @property
    def mean(self) -> float | None:
        """The weighted mean."""
        if not len(self.values):
            return None
        if self.weights is None or not self.weights.sum() > 0:
            return float(np.mean(self.values))
        return float(np.sum(self.values * (self.weights / np.sum(self.weights))))

    @property
    def max(self) -> float | None:
        """The largest value with a weight above 0."""
        if not len(self.values):
            return None
        return float(
            np.max(
                self.values if self.weights is None else self.values[self.weights > 0],
                initial=-np.inf,
            )
        )

    def percentile(self, p: float) -> float | None:
        """Return the `p`-th percentile, 0 <= `p` <= 100."""
        if not len(self.values):
            return None
        if self.weights is None and not self.steps:
            return float(np.percentile(self.values, p))
        values, weights = self.distinct
        if self.steps:
            # Shares are summed in the tool's order: another order may change the last bit.
            reached = int(
                np.searchsorted(np.cumsum(weights / np.sum(weights)), p / 100, side="left")
            )
            return float(values[min(reached, len(values) - 1)])
        ends = np.cumsum(weights)
        rank = p / 100 * float(ends[-1] - 1)
        whole = math.floor(rank)
        positions = np.searchsorted(ends, [whole, whole + 1], side="right")
        low, high = values[np.minimum(positions, len(values) - 1)]
        return float(low + (high - low) * (rank - whole))

    @cached_property
    def distinct(self) -> tuple[Floats, Floats]:
        """Distinct values in ascending order and their weights; weights of 1 if all are 0."""
        weights = np.ones(len(self.values)) if self.weights is None else self.weights
        values, where = np.unique(self.values, return_inverse=True)
        sums = np.bincount(where, weights).astype(np.float64)
        if sums.sum() <= 1e-6:
            return values, np.ones(len(values))
        return values[sums > 0], sums[sums > 0]
