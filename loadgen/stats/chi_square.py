"""Quantiles of the chi-square distribution, from the series of the incomplete gamma function.

SciPy is not installed by default, so they are computed here (Press et al., Numerical Recipes, 3rd ed., 6.2).
"""

import math
from functools import lru_cache

from loadgen.stats import bisection

PRECISION = 1e-13


@lru_cache(maxsize=256)
def quantile(p: float, df: float) -> float:
    """Return the value that a chi-square variable exceeds with probability 1 - `p`.

    Args:
        p: Above 0 and below 1.
    """
    return bisection.end_of(lambda x: _distribution(x, df) < p, PRECISION)


def _distribution(x: float, df: float) -> float:
    """Return the probability of a value up to `x`, above 0."""
    a, half = df / 2, x / 2
    term = total = 1 / a
    while term > PRECISION * total:
        a += 1
        term *= half / a
        total += term
    return total * math.exp(-half + df / 2 * math.log(half) - math.lgamma(df / 2))
