"""Student: the distribution of a mean by the standard error that was estimated beside it, of any degrees of freedom.

By the incomplete beta function, as a continued fraction (Press et al., Numerical Recipes, 3rd ed., 6.4), so that it
needs no other package.
"""

import math
from functools import lru_cache

TERMS = 10_000  # of the fraction: some root of the degrees of freedom are needed
EXACT = 1e-15


def by_chance(t: float, df: float) -> float:
    """How likely Student's variable is as far from 0 as `t`, on either side.

    Args:
        t: 0 or more.
        df: Degrees of freedom, above 0.
    """
    square = t * t
    return _beta(df / 2, 0.5, df / (df + square), square / (df + square)) if math.isfinite(square) else 0.0


@lru_cache(maxsize=4096)
def beyond(chance: float, df: float) -> float:
    """How far from 0 it is at least, with this chance, on either side.

    At 0.05, 2.78 of 4 degrees of freedom, 1.96 of many.

    Args:
        chance: Above 0, and below 1.
        df: Degrees of freedom, above 0.
    """
    low, high = 0.0, 1.0
    while by_chance(high, df) > chance:
        low, high = high, 2 * high
    while high - low > EXACT * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if by_chance(middle, df) > chance else (low, middle)
    return high


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularized incomplete beta function of `x`, from 0 to 1; the `rest` is 1 - `x`."""
    if not x or not rest:
        return x
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    if x < (a + 1) / (a + b + 2):  # there the fraction converges fast
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """By Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= d * c
        if abs(d * c - 1) < EXACT:
            break
    return value
