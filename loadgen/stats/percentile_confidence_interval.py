"""Order statistics: the sample size that a percentile needs, and the confidence interval of a
percentile.

For independent values both follow from the binomial distribution of how many of them lie below a
percentile, whatever the distribution of the values is (e.g. David and Nagaraja, Order Statistics,
2003, section 7.1). Requests that wait in one queue are not independent: for 1,000 requests to the
simulator's scheduler with 8 slots, such an interval of the p99 TTFT holds in 97 % of runs at 30 %
of capacity, in 73 % at 60 %, in 38 % at 80 %. So theirs comes from
`block_bootstrap.percentile_bounds`.
"""

import math
from bisect import bisect_left
from typing import Protocol

CONFIDENCE = 0.99
# Above this variance the normal approximation, with its correction for continuity, errs by less
# than one rank.
_LARGE_VARIANCE = 100.0


class SortedValues(Protocol):
    """Values that can be read by their rank, as a histogram can.

    Attributes:
        count: Number of values.
    """

    @property
    def count(self) -> int: ...  # noqa: D102

    def value_at_rank(self, rank: int, /) -> float:
        """Return the value with this rank, from 0 to count - 1, in ascending order."""


def least_samples(p: float) -> int:
    """Return the smallest sample of which, with CONFIDENCE, two or more values lie beyond the
    `p`-th percentile.

    p90 needs 64, p95 130, p99 662, p99.9 6636; the same below the median. The extremes themselves
    need 1.

    Args:
        p: 0 to 100.
    """
    beyond = min(p, 100 - p) / 100
    if beyond <= 0:
        return 1

    def is_enough(n: int) -> bool:
        fewer_than_two = (1 - beyond) ** n + n * beyond * (1 - beyond) ** (n - 1)
        return fewer_than_two <= 1 - CONFIDENCE

    # With ten values expected there, fewer than two come with a chance of 0.0005.
    upper = math.ceil(10 / beyond)
    return bisect_left(range(upper), True, lo=2, key=is_enough)


def interval(values: SortedValues, p: float) -> tuple[float | None, float | None]:
    """Return the confidence interval of the `p`-th percentile, with CONFIDENCE.

    Args:
        values: A sample.
        p: 0 to 100.

    Returns:
        Two values of the sample; None on a side where the sample is too small to have a bound.
    """
    n, tail = values.count, (1 - CONFIDENCE) / 2
    low, high = _binomial_quantile(n, p / 100, tail) - 1, _binomial_quantile(n, p / 100, 1 - tail)
    return values.value_at_rank(low) if low >= 0 else None, values.value_at_rank(
        high
    ) if high < n else None


def _binomial_quantile(n: int, share: float, tail: float) -> int:
    """Return the smallest k such that a binomial (`n`, `share`) number is at most k with
    probability `tail` or more.
    """
    if share > 0.5:
        return n - _binomial_quantile(n, 1 - share, 1 - tail)
    variance = n * share * (1 - share)
    if variance > _LARGE_VARIANCE:
        from statistics import NormalDist  # not before: it is slow to import

        return math.ceil(NormalDist(n * share, math.sqrt(variance)).inv_cdf(tail) - 0.5)
    if share == 0 or n == 0:
        return 0
    below = 0.0
    for k in range(n + 1):
        log_ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        below += math.exp(log_ways + k * math.log(share) + (n - k) * math.log1p(-share))
        if below >= tail:
            return k
    return n
