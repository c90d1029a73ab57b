"""Confidence: how many values a percentile needs, and between which values of a sample the true percentile lies.

Both follow from the binomial distribution of how many of n independent values lie below a percentile, whatever the
values' own distribution is (order statistics; e.g. David and Nagaraja, 2003, section 7.1). Requests that wait in one
queue are not independent: of the simulator's scheduler with 8 slots, 1,000 requests a run, the interval of the p99 TTFT
holds in 97 % of runs at 30 % of capacity, in 73 % at 60 %, in 38 % at 80 %. Gaps between tokens are not either: those
of all streams share the engine's steps.
"""

import math
from statistics import NormalDist

from loadgen.core.histogram import Histogram

CONFIDENCE = 0.99
# Above this variance the normal approximation, with its correction for continuity, errs by less than one rank.
_LARGE_VARIANCE = 100.0


def least_samples(p: float) -> int:
    """The fewest values of which, with CONFIDENCE, two at least lie beyond the `p`-th percentile (0 <= `p` <= 100).

    p90 64, p95 130, p99 662, p99.9 6636; the same below the median. 1 for the extremes themselves.
    """
    beyond = min(p, 100 - p) / 100
    if beyond <= 0:
        return 1

    def too_few(n: int) -> bool:
        fewer_than_two = (1 - beyond) ** n + n * beyond * (1 - beyond) ** (n - 1)
        return fewer_than_two > 1 - CONFIDENCE

    low, high = 1, 2
    while too_few(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_few(middle) else (low, middle)
    return high


def interval(histogram: Histogram, p: float) -> tuple[float | None, float | None]:
    """Between which of the recorded values the true `p`-th percentile lies, with CONFIDENCE.

    None on a side where the values are too few to bound it, and on both where there is none.
    """
    n, tail = histogram.count, (1 - CONFIDENCE) / 2
    low, high = _quantile(n, p / 100, tail) - 1, _quantile(n, p / 100, 1 - tail)
    return (
        histogram.value_at_rank(low) if low >= 0 else None,
        histogram.value_at_rank(high) if high < n else None,
    )


def by_chance(few: int, of: int, all_few: int, of_all: int) -> float:
    """How likely `few` or more of `all_few` failures among `of_all` fall upon `of` of them, were it left to chance.

    The one-sided p-value of Fisher's exact test: the tail of a hypergeometric distribution.
    """

    def ways(n: int, k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    tail = 0.0
    for k in range(max(few, of + all_few - of_all), min(of, all_few) + 1):
        term = math.exp(ways(of, k) + ways(of_all - of, all_few - k) - ways(of_all, all_few))
        tail += term
        if term < tail * 1e-9:  # beyond the mode, where terms only fall
            break
    return min(tail, 1.0)


def _quantile(n: int, share: float, tail: float) -> int:
    """The smallest k such that a binomial (`n`, `share`) number is at most k with probability `tail` or more."""
    if share > 0.5:
        return n - _quantile(n, 1 - share, 1 - tail)
    variance = n * share * (1 - share)
    if variance > _LARGE_VARIANCE:
        return math.ceil(NormalDist(n * share, math.sqrt(variance)).inv_cdf(tail) - 0.5)
    if share == 0 or n == 0:
        return 0
    below = 0.0
    for k in range(n + 1):
        ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        below += math.exp(ways + k * math.log(share) + (n - k) * math.log1p(-share))
        if below >= tail:
            return k
    return n
