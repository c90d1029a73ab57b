"""Student's t and the chi-square distribution, with any positive real number of degrees of freedom.

They are computed here because SciPy is not installed by default: Student's t from the incomplete
beta function as a continued fraction (Press et al., Numerical Recipes, 3rd ed., 6.4), the
chi-square distribution from the series of the incomplete gamma function (6.2). Their quantiles are
found by bisection.
"""

import math
from collections.abc import Callable
from functools import lru_cache

MAX_TERMS = 10_000  # of the fraction: about the square root of the degrees of freedom are needed
STUDENT_PRECISION = 1e-15
CHI_SQUARE_PRECISION = 1e-13


def student_two_sided_p(t: float, df: float) -> float:
    """Return the two-sided p-value of a t statistic: the chance of a value as far from 0 on either
    side.

    Args:
        t: Absolute value of the statistic, 0 or more; may be infinite.
        df: Degrees of freedom, above 0.
    """
    square = t * t
    return (
        _beta(df / 2, 0.5, df / (df + square), square / (df + square))
        if math.isfinite(square)
        else 0.0
    )


@lru_cache(maxsize=4096)
def student_two_sided_quantile(p: float, df: float) -> float:
    """Return the t statistic whose two-sided p-value is `p`, as 2.78 for 0.05 and 4 degrees of
    freedom.

    Args:
        p: Above 0 and below 1.
        df: Degrees of freedom, above 0.
    """
    return bisect_end(lambda t: student_two_sided_p(t, df) > p, STUDENT_PRECISION)


@lru_cache(maxsize=256)
def chi_square_quantile(p: float, df: float) -> float:
    """Return the value that a chi-square variable exceeds with probability 1 - `p`.

    Args:
        p: Above 0 and below 1.
        df: Degrees of freedom, above 0.
    """
    return bisect_end(lambda x: _chi_square_distribution(x, df) < p, CHI_SQUARE_PRECISION)


def bisect_end(holds: Callable[[float], bool], precision: float) -> float:
    """Return where a condition ends that holds from 0 on.

    Args:
        holds: Whether the condition holds at a value above 0.
        precision: How far above the end the result may lie, as a share of it.
    """
    low = 0.0
    high = 1.0
    while holds(high):
        low, high = high, 2 * high
    while high - low > precision * high:
        middle = (low + high) / 2
        if middle in (low, high):  # there is no number between them
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def _beta(a: float, b: float, x: float, complement: float) -> float:
    """Return the regularized incomplete beta function at `x`, from 0 to 1; `complement` is 1 -
    `x`.
    """
    if not x or not complement:
        return x
    front = math.exp(
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log(complement)
    )
    if x < (a + 1) / (a + b + 2):  # there the fraction converges fast
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, complement) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method."""
    c = 1.0
    d = 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= d * c
        if abs(d * c - 1) < STUDENT_PRECISION:
            break
    return value


def _chi_square_distribution(x: float, df: float) -> float:
    """Return the probability of a value up to `x`, above 0."""
    a = df / 2
    half = x / 2
    term = total = 1 / a
    while term > CHI_SQUARE_PRECISION * total:
        a += 1
        term *= half / a
        total += term
    return total * math.exp(-half + df / 2 * math.log(half) - math.lgamma(df / 2))
