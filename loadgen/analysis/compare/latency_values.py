"""LatencyValues: the values of a latency in a run, summed per request, and their bootstrap replicates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from loadgen.core.histogram import Histogram
from loadgen.stats.block_bootstrap import effective_sample_size, resample_ratio
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.arrays import Floats

MIN_SAMPLE_SIZE = 100  # effective, for any interval


@dataclass(frozen=True, slots=True)
class LatencyValues:
    """The values of a latency; each array has an entry per request, shape (n,).

    Attributes:
        sums: Sum of the request's values, ms.
        counts: Number of its values.
        within: Number of its values up to a percentile of all values, by the percentile.
        distribution: The distribution of all values, ns.
    """

    sums: Floats
    counts: Floats
    within: Mapping[float, Floats]
    distribution: Histogram

    @property
    def means(self) -> Floats:
        """Mean of each request's values, ms; NaN if it has none."""
        means: Floats = np.divide(
            self.sums, self.counts, out=np.full(len(self.counts), math.nan), where=self.counts > 0
        )
        return means

    def resample_mean(self, length: int, seed: int) -> Floats | None:
        """Return bootstrap replicates of the mean, ms; None if the values are too few.

        Args:
            length: The length of a block, in requests.
            seed: The seed of the random numbers.
        """
        means = resample_ratio(self.sums, self.counts, length, seed)
        if np.isnan(means).any():
            return None
        count = self.counts.sum()
        independent_variance = np.square(self.sums - self.sums.sum() / count * self.counts).sum() / count**2
        n_eff = effective_sample_size(float(np.count_nonzero(self.counts)), independent_variance, means)
        return means if n_eff >= MIN_SAMPLE_SIZE else None

    def resample_percentile(self, p: float, length: int, seed: int) -> Floats | None:
        """Return bootstrap replicates of the `p`-th percentile, ms; None if the values are too few.

        The share of values up to the percentile is resampled; the percentile follows from how far that share is from
        the run's own (Woodruff, J. Am. Stat. Assoc. 47, 1952), by the distribution of all values.

        Args:
            p: One of the keys of `within`.
            length: The length of a block, in requests.
            seed: The seed of the random numbers.
        """
        count = float(self.counts.sum())
        if not 0 < p < 100 or count < least_samples(p):
            return None
        within = self.within[p]
        shares = resample_ratio(within, self.counts, length, seed)
        share = float(within.sum()) / count
        if np.isnan(shares).any():
            return None
        if effective_sample_size(count, share * (1 - share) / count, shares) < max(MIN_SAMPLE_SIZE, least_samples(p)):
            return None
        at = np.clip(p + 100 * (share - shares), 0, 100)
        return np.array(self.distribution.percentiles(at.tolist()), dtype=float) / 1e6
