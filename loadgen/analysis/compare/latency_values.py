"""Values: all values of a latency in a run, summed for each request, and what they tell of the run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from loadgen.core.histogram import Histogram
from loadgen.stats import block_bootstrap
from loadgen.stats.percentile_interval import least_samples
from loadgen.util.arrays import Floats

FEWEST = 100  # independent values, for anything that is said of them
ROUNDING = 1e-12  # a share that is no difference


@dataclass(frozen=True, slots=True)
class Values:
    """The values of the requests of a run; each array has shape (n,).

    Attributes:
        total: Their sum, ms.
        count: How many there are.
        within: How many are no longer than a percentile of all values, by the percentile.
        distribution: Of all values, ns.
    """

    total: Floats
    count: Floats
    within: Mapping[float, Floats]
    distribution: Histogram

    @property
    def means(self) -> Floats:
        """Of each request the mean of its values; NaN where it has none."""
        means: Floats = np.divide(self.total, self.count, out=np.full(len(self.count), math.nan), where=self.count > 0)
        return means

    def mean(self, length: int, seed: int) -> Floats | None:
        """The means of runs drawn anew, as `blocks.ratios`; None where the values are too few to tell them."""
        means = block_bootstrap.ratios(self.total, self.count, length, seed)
        if np.isnan(means).any():
            return None
        whole = self.count.sum()
        independent = np.square(self.total - self.total.sum() / whole * self.count).sum() / whole**2
        return means if _told(float(np.count_nonzero(self.count)), independent, means) >= FEWEST else None

    def percentile(self, p: float, length: int, seed: int) -> Floats | None:
        """The `p`-th percentiles of runs drawn anew; None where the values are too few to tell them.

        What is drawn anew is the share of values up to the percentile; a percentile follows from how far that share is
        from the run's own (Woodruff, J. Am. Stat. Assoc. 47, 1952), by the distribution of all.
        """
        count = float(self.count.sum())
        if not 0 < p < 100 or count < least_samples(p):
            return None
        within = self.within[p]
        shares = block_bootstrap.ratios(within, self.count, length, seed)
        share = float(within.sum()) / count
        if np.isnan(shares).any() or _told(count, share * (1 - share) / count, shares) < max(FEWEST, least_samples(p)):
            return None
        at = np.clip(p + 100 * (share - shares), 0, 100)
        return np.array(self.distribution.percentiles(at.tolist()), dtype=float) / 1e6


def _told(count: float, independent: float, drawn: Floats) -> float:
    """How many independent values would tell as much as these do, which share their fate.

    Args:
        count: Of these.
        independent: What the variance would be, if they were.
        drawn: What they came to in runs drawn anew.
    """
    variance = float(drawn.var())
    if variance <= (ROUNDING * float(drawn.mean())) ** 2:  # where no value differs from another
        return count
    return count * min(1.0, independent / variance)
