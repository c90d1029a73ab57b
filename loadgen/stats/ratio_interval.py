"""Bounds: between which values a share, or a mean, lies that the requests of a run show.

Each is a ratio of sums over the requests, in the order in which they were due: good requests by requests, short gaps by
gaps, the sum of a latency by how many there are. A bootstrap of blocks of requests (`loadgen.stats.block_bootstrap`)
gives the standard error of a ratio of requests that shared the server, and Student's distribution the bound, as in
comparisons. Shares are bounded as Wilson has it (J. Am. Stat. Assoc. 22, 1927). Latencies are above 0 and skewed, so
that a run that happens to have a low mean shows too small an error of it: the upper bound of a mean is that of its
reciprocal.
"""

import math

import numpy as np

from loadgen.stats import block_bootstrap, student_t
from loadgen.util.arrays import Floats


def of_share(good: Floats, of: Floats, length: int, confidence: float) -> tuple[float, float]:
    """Between which shares that of what is good lies; each bound holds with `confidence`.

    A run in which nearly all is good shows little of how misses cluster. So of b blocks no more is believed than
    b * b / 5 independent requests tell; of five blocks or fewer each tells as much as one request.

    Args:
        good: Of each request, how much of it is good.
        of: Of how much; 0 for a request that does not count. One counts at least.
        length: Of blocks, in requests.
        confidence: Of each bound.
    """
    share, count = _ratio(good, of), int(np.count_nonzero(of))
    independent = share * (1 - share) / count  # the variance, if what counts were a request each, and all independent
    effect, df = _design_effect(good, of, length, independent)
    number = len(good) / length
    n_eff = min(count / effect, number * max(1.0, number / block_bootstrap.FEWEST))
    t = _quantile(confidence, df)
    middle = (share + t * t / (2 * n_eff)) / (1 + t * t / n_eff)
    half = t / (1 + t * t / n_eff) * math.sqrt(share * (1 - share) / n_eff + t * t / (4 * n_eff * n_eff))
    return middle - half, middle + half


def of_mean(total: Floats, of: Floats, length: int, confidence: float) -> tuple[float, float]:
    """Between which values a mean of positive values lies; each bound holds with `confidence`.

    Args:
        total: Of each request, the sum of its values.
        of: How many these are; 0 for a request that does not count. One counts at least.
        length: Of blocks, in requests.
        confidence: Of each bound.

    Returns:
        The upper one is infinite where the values tell none.
    """
    mean = _ratio(total, of)
    independent = float(np.square(total - mean * of).sum()) / float(of.sum()) ** 2
    effect, df = _design_effect(total, of, length, independent)
    half = _quantile(confidence, df) * math.sqrt(independent * effect) / mean if mean else 0.0
    return mean * (1 - half), mean / (1 - half) if half < 1 else math.inf


def _ratio(part: Floats, of: Floats) -> float:
    return float(part.sum()) / float(of.sum())


def _quantile(confidence: float, df: float) -> float:
    return student_t.beyond(2 * (1 - confidence), df)


def _design_effect(part: Floats, of: Floats, length: int, independent: float) -> tuple[float, float]:
    """How many requests tell as much of a ratio as one would that shared nothing with others, and degrees of freedom.

    By resampling blocks of the run; where these are too few for that, as many as a block has. 1 at least.

    Args:
        part: Of each request.
        of: Likewise.
        length: Of blocks, in requests.
        independent: What the variance of the ratio would be, if none shared anything.
    """
    count = len(part)
    if not block_bootstrap.tell(count, length):
        return length, max(1.0, count / length - 1)
    drawn = block_bootstrap.ratios(part, of, length)
    error, df = block_bootstrap.standard_error(drawn[np.isfinite(drawn)], count, length)
    return max(1.0, error**2 / independent) if independent else 1.0, df
