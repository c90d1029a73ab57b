"""Circular block bootstrap of ratios of sums, and of percentiles, over a series of dependent
observations.

Observations that follow each other depend on each other, so blocks of neighbours are resampled
instead of single observations (Kuensch, Ann. Stat. 17, 1989), from the series taken as a circle
(Politis and Romano, in: Exploring the Limits of Bootstrap, 1992).
"""

import math
from dataclasses import dataclass

import numpy as np

from loadgen.stats import distributions
from loadgen.stats.percentile_confidence_interval import CONFIDENCE, least_samples
from loadgen.util.arrays import Floats

RESAMPLES = 400
MIN_SAMPLE_SIZE = 100  # effective, for any interval
MIN_BLOCKS = 5  # fewer blocks show too little of how they vary
ROUNDING = 1e-12  # relative differences up to this are rounding errors


@dataclass(frozen=True, slots=True)
class BlockBootstrap:
    """Replicates of a ratio by resampled blocks.

    Attributes:
        length: The length of a block, in observations.
    """

    length: int

    def ratios(self, numerator: Floats, denominator: Floats, seed: int) -> Floats:
        """Return replicates of the ratio of two sums, as `resample_ratio`."""
        return resample_ratio(numerator, denominator, self.length, seed)

    def is_enough(
        self, count: float, independent_variance: float, replicates: Floats, least: int
    ) -> bool:
        """Tell whether the observations are worth MIN_SAMPLE_SIZE independent ones, and `least`.

        Args:
            count, independent_variance, replicates: As for `effective_sample_size`.
            least: How many independent observations the statistic needs.
        """
        n_eff = effective_sample_size(count, independent_variance, replicates)
        return n_eff >= max(MIN_SAMPLE_SIZE, least)

    def standard_error(self, replicates: Floats, count: float) -> tuple[float, float]:
        """Return the standard error of a statistic and its degrees of freedom, as the function
        of this name.
        """
        return standard_error(replicates, count, self.length)


def block_length(count: int, concurrency: float, *series: Floats) -> int:
    """Return the block length: the largest of three bounds on how far observations depend on each
    other.

    - Twice the number of observations that are under way at once, and the cube root of the series,
      up to its length.
    - Twice the length that Politis and White give for the autocorrelations of each series. Their
      length minimizes the mean squared error of the variance; twice as long makes a variance that
      is too small rarer: of simulated queues that are alike, fewer differ significantly.

    Args:
        count: Number of observations.
        concurrency: Observations under way at once, on average.
        series: Values of each observation, shape (count,), in order; NaN where there is none.
    """
    least = min(count, math.ceil(max(2 * concurrency, math.cbrt(count))))
    return math.ceil(max([least, *(2 * politis_white_length(values) for values in series)]))


def politis_white_length(series: Floats) -> float:
    """Return the optimal block length of the circular bootstrap by the autocorrelations of a
    series.

    Politis and White (Econom. Rev. 23, 2004), with the correction of Patton, Politis and White
    (Econom. Rev. 28, 2009).

    Args:
        series: Shape (n,), in order; NaN where there is no value.

    Returns:
        1 or more; 1 if the series has no positive autocorrelation.
    """
    n = len(series)
    residuals = (
        np.nan_to_num(series - np.nanmean(series)) if not np.isnan(series).all() else np.zeros(n)
    )
    if n < 4 or not residuals.any():
        return 1.0
    run_length, max_length = max(5, round(math.log10(n))), math.ceil(min(3 * math.sqrt(n), n / 3))
    max_lag = min(math.ceil(math.sqrt(n)) + run_length, n - 1)
    spectrum = np.abs(np.fft.rfft(residuals, 2 * n)) ** 2
    covariance = np.fft.irfft(spectrum)[: max_lag + 1] / n
    # The last lag before `run_length` lags in a row that are not significant.
    significant_lags = (
        np.flatnonzero(np.abs(covariance[1:]) > 2 * math.sqrt(math.log10(n) / n) * covariance[0])
        + 1
    )
    gaps = np.diff(np.concatenate(([0], significant_lags, [max_lag + run_length + 1])))
    last = int(np.concatenate(([0], significant_lags))[np.argmax(gaps > run_length)])
    lags = np.arange(1, min(2 * max(last, 1), max_lag) + 1)
    window = np.minimum(1.0, 2 * (1 - lags / lags[-1])) * covariance[lags]
    g_hat, spectral_density = 2 * float(window @ lags), float(covariance[0] + 2 * window.sum())
    if (
        spectral_density <= covariance[0]
    ):  # for such a series shorter blocks at most overstate the variance
        return 1.0
    return min(float(max_length), max(1.0, math.cbrt(1.5 * g_hat**2 / spectral_density**2 * n)))


def enough_blocks(count: int, length: int) -> bool:
    """Tell whether a series of `count` observations has MIN_BLOCKS blocks of this length."""
    return count >= MIN_BLOCKS * length


def resample_ratio(numerator: Floats, denominator: Floats, length: int, seed: int = 0) -> Floats:
    """Return bootstrap replicates of the ratio of two sums.

    The same number of observations, length and seed draw the same blocks, so several ratios, also
    of two series whose observations belong together in pairs, are resampled together.

    Args:
        numerator: The numerator of each observation, shape (n,).
        denominator: The denominator of each observation, shape (n,).
        length: The length of a block, in observations, 1 to n.
        seed: The seed of the random numbers.

    Returns:
        Shape (RESAMPLES,); NaN where the denominators sum to 0.
    """
    count = len(numerator)
    assert 0 < length <= count, "a block goes round the circle once at most"
    begins = np.random.default_rng(seed).integers(
        count, size=(RESAMPLES, math.ceil(count / length))
    )
    # The last block is cut: a resample is as long as the series.
    last = count - (begins.shape[1] - 1) * length
    numerators, denominators = (
        _block_sums(values, length)[begins[:, :-1]].sum(axis=1)
        + _block_sums(values, last)[begins[:, -1]]
        for values in (numerator, denominator)
    )
    ratios: Floats = np.divide(
        numerators, denominators, out=np.full(RESAMPLES, math.nan), where=denominators > 0
    )
    return ratios


def standard_error(replicates: Floats, count: float, length: int) -> tuple[float, float]:
    """Return the standard error of a statistic and its degrees of freedom (Student's).

    As with any sample of b values, resamples of b blocks vary by (b - 1) / b of the true variance,
    and b blocks leave b - 1 degrees of freedom.

    Args:
        replicates: The replicates of the statistic, shape (RESAMPLES,).
        count: Number of observations.
        length: The length of a block, in observations; less than `count`.
    """
    blocks = count / length
    return float(replicates.std(ddof=1)) * math.sqrt(blocks / (blocks - 1)), blocks - 1


def effective_sample_size(count: float, independent_variance: float, replicates: Floats) -> float:
    """Return how many independent observations would give a statistic of the same variance; `count`
    at most.

    Args:
        count: Number of observations.
        independent_variance: Variance that the statistic would have if the observations were
            independent.
        replicates: The replicates of the statistic, shape (RESAMPLES,).
    """
    variance = float(replicates.var())
    if variance <= (ROUNDING * float(replicates.mean())) ** 2:  # all observations are equal
        return count
    return count * min(1.0, independent_variance / variance)


def percentile_bounds(values: Floats, p: float, length: int) -> tuple[float, float] | None:
    """Return between which percentiles of a series its true `p`-th percentile lies, with
    CONFIDENCE.

    The share of values up to the percentile is resampled in blocks, and the bounds of that share
    are the percentiles (Woodruff, J. Am. Stat. Assoc. 47, 1952).

    Args:
        values: The series, in order, shape (n,); its values may depend on those before.
        p: 0 to 100.
        length: The length of a block (`block_length`).

    Returns:
        Percentiles, 0 to 100; None if the series is worth too few independent values or blocks.
    """
    count = len(values)
    if not 0 < p < 100 or not enough_blocks(count, length):
        return None
    # np.percentile would import numpy.ma
    percentile = np.interp(p / 100 * (count - 1), np.arange(count), np.sort(values))
    within: Floats = (values <= percentile).astype(float)
    share = float(within.mean())
    shares = resample_ratio(within, np.ones(count), length)
    worth = effective_sample_size(count, share * (1 - share) / count, shares)
    if worth < max(MIN_SAMPLE_SIZE, least_samples(p)):
        return None
    error, df = standard_error(shares, count, length)
    margin = 100 * error * distributions.student_two_sided_quantile(1 - CONFIDENCE, df)
    return max(0.0, p - margin), min(100.0, p + margin)


def _block_sums(values: Floats, length: int) -> Floats:
    """Return the sum of the block that begins with each observation, shape (n,)."""
    sums = np.concatenate(
        ([0.0], np.cumsum(np.concatenate((values, values[: length - 1])), dtype=float))
    )
    block_sums: Floats = sums[length:] - sums[:-length]
    return block_sums
