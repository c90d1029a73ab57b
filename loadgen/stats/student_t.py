"""Student's t distribution, with any positive real number of degrees of freedom.

It is computed from the incomplete beta function as a continued fraction (Press et al., Numerical Recipes, 3rd ed.,
6.4), because SciPy is not installed by default.
"""

import math
from functools import lru_cache

from loadgen.stats import bisection

MAX_TERMS = 10_000  # of the fraction: about the square root of the degrees of freedom are needed
PRECISION = 1e-15


def two_sided_p(t: float, df: float) -> float:
    """Return the two-sided p-value of a t statistic: the chance of a value as far from 0 on either side.

    Args:
        t: Absolute value of the statistic, 0 or more; may be infinite.
        df: Degrees of freedom, above 0.
    """
    square = t * t
    return _beta(df / 2, 0.5, df / (df + square), square / (df + square)) if math.isfinite(square) else 0.0


@lru_cache(maxsize=4096)
def two_sided_quantile(p: float, df: float) -> float:
    """Return the t statistic whose two-sided p-value is `p`, as 2.78 for 0.05 and 4 degrees of freedom.

    Args:
        p: Above 0 and below 1.
    """
    return bisection.end_of(lambda t: two_sided_p(t, df) > p, PRECISION)


def _beta(a: float, b: float, x: float, complement: float) -> float:
    """Return the regularized incomplete beta function at `x`, from 0 to 1; `complement` is 1 - `x`."""
    if not x or not complement:
        return x
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(complement))
    if x < (a + 1) / (a + b + 2):  # there the fraction converges fast
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, complement) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= d * c
        if abs(d * c - 1) < PRECISION:
            break
    return value
