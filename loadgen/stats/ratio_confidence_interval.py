"""Confidence bounds of a share or a mean: a ratio of sums over a series of dependent observations.

The standard error comes from the block bootstrap (`loadgen.stats.block_bootstrap`), the bound from
Student's t. Shares are bounded by Wilson's interval (J. Am. Stat. Assoc. 22, 1927) with the
effective sample size. Positive values are skewed, and a series that happens to have a low mean
shows too small an error of it, so the upper bound of a mean is that of its reciprocal.
"""

import math

import numpy as np

from loadgen.stats import block_bootstrap, distributions
from loadgen.util.arrays import Floats


def share_bounds(
    good: Floats, total: Floats, length: int, confidence: float
) -> tuple[float, float]:
    """Return the lower and the upper bound of a share; each holds with `confidence`.

    A series in which nearly all is good shows little of how failures cluster. So the effective
    sample size of b blocks is b * b / 5 at most; with five blocks or fewer each counts as one
    observation.

    Args:
        good: How much of each observation is good, shape (n,).
        total: Of each observation, how much there is, shape (n,); 0 for one that does not count.
            One counts at least.
        length: The length of a block, in observations.
        confidence: The confidence of each bound, above 0.5.
    """
    share, k2 = _ratio(good, total), _squared_error_factor(good, total, length, confidence)
    center = (share + k2 / 2) / (1 + k2)
    half_width = math.sqrt(k2 * share * (1 - share) + k2 * k2 / 4) / (1 + k2)
    return center - half_width, center + half_width


def deciding_shares(
    good: Floats, total: Floats, length: int, confidence: float, threshold: float
) -> tuple[float, float]:
    """Return the shares between which `share_bounds` cannot tell a sample of this size from a
    threshold.

    A share below the first has its upper bound below the threshold, one above the second its lower
    bound above it. So the values at these two percentiles bound the value at the percentile that
    the threshold names.

    Args:
        good, total, length, confidence: As for `share_bounds`.
        threshold: The share to tell from, 0 to 1.

    Returns:
        The second is above 1 if the observations are too few to show any share to be above the
        threshold.
    """
    k2 = _squared_error_factor(good, total, length, confidence)
    # The test that Wilson's interval inverts.
    half_width = math.sqrt(k2 * threshold * (1 - threshold))
    return threshold - half_width, threshold + half_width


def _squared_error_factor(good: Floats, total: Floats, length: int, confidence: float) -> float:
    """Return the square of the quantile by the effective sample size: the error of a share is
    its root * s (1 - s).
    """
    share, count = _ratio(good, total), int(np.count_nonzero(total))
    independent_variance = share * (1 - share) / count
    design_effect, df = _design_effect(good, total, length, independent_variance)
    blocks = len(good) / length
    n_eff = min(count / design_effect, blocks * max(1.0, blocks / block_bootstrap.MIN_BLOCKS))
    return _one_sided_quantile(confidence, df) ** 2 / n_eff


def mean_bounds(
    sums: Floats, counts: Floats, length: int, confidence: float
) -> tuple[float, float]:
    """Return the lower and the upper bound of a mean of positive values; each holds with
    `confidence`.

    Args:
        sums: Of each observation, the sum of its values, shape (n,).
        counts: Of each observation, the number of its values, shape (n,); 0 for one that does not
            count. One counts at least.
        length: The length of a block, in observations.
        confidence: The confidence of each bound, above 0.5.

    Returns:
        The upper bound is infinite if the values do not bound the mean.
    """
    mean = _ratio(sums, counts)
    independent_variance = float(np.square(sums - mean * counts).sum()) / float(counts.sum()) ** 2
    design_effect, df = _design_effect(sums, counts, length, independent_variance)
    error = math.sqrt(independent_variance * design_effect)
    half_width = _one_sided_quantile(confidence, df) * error / mean if mean else 0.0
    return mean * (1 - half_width), mean / (1 - half_width) if half_width < 1 else math.inf


def _ratio(numerator: Floats, denominator: Floats) -> float:
    return float(numerator.sum()) / float(denominator.sum())


def _one_sided_quantile(confidence: float, df: float) -> float:
    return distributions.student_two_sided_quantile(2 * (1 - confidence), df)


def _design_effect(
    numerator: Floats, denominator: Floats, length: int, independent_variance: float
) -> tuple[float, float]:
    """Return the design effect of a ratio and the degrees of freedom of its variance.

    The design effect is the variance of the ratio over the variance that it would have if the
    observations were independent, 1 at least. Where there are too few blocks to resample, it is the
    length of a block.

    Args:
        numerator: The numerator of each observation, shape (n,).
        denominator: The denominator of each observation, shape (n,).
        length: The length of a block, in observations.
        independent_variance: The variance of the ratio if observations were independent.
    """
    count = len(numerator)
    if not block_bootstrap.enough_blocks(count, length):
        return length, max(1.0, count / length - 1)
    replicates = block_bootstrap.resample_ratio(numerator, denominator, length)
    error, df = block_bootstrap.standard_error(replicates[np.isfinite(replicates)], count, length)
    return max(1.0, error**2 / independent_variance) if independent_variance else 1.0, df
