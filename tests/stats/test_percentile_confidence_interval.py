"""The sample that a percentile needs, and its interval, against the binomial distribution."""

import math

import numpy as np
import pytest

from loadgen.core.histogram import Histogram
from loadgen.stats.percentile_confidence_interval import interval, least_samples


def counted(values):
    histogram = Histogram()
    histogram.record_many(np.asarray(values, dtype=np.int64))
    return histogram


def at_most(k, n, share):
    """The probability that a binomial number is at most k; `share` to the thousandth, reckoned
    in whole numbers.
    """
    per_mille = round(share * 1000)
    ways = sum(math.comb(n, i) * per_mille**i * (1000 - per_mille) ** (n - i) for i in range(k + 1))
    return ways / 1000**n


# -- least_samples


@pytest.mark.parametrize(("p", "needed"), [(90, 64), (95, 130), (99, 662), (99.9, 6636)])
def test_least_samples_of_usual_percentiles(p, needed):
    assert least_samples(p) == needed


@pytest.mark.parametrize("p", [50, 75, 90, 99, 99.9])
def test_least_samples_is_exact(p):
    needed, beyond = least_samples(p), 1 - p / 100
    assert at_most(1, needed, beyond) <= 0.01
    assert at_most(1, needed - 1, beyond) > 0.01


def test_least_samples_is_symmetric():
    assert least_samples(10) == least_samples(90)
    assert least_samples(1) == least_samples(99)


def test_least_samples_of_extremes_is_1():
    assert least_samples(0) == least_samples(100) == 1


# -- interval


@pytest.mark.parametrize("p", [10, 50, 90, 99])
@pytest.mark.parametrize("n", [5, 30, 100, 700])
def test_interval_ends_are_exact_ranks(p, n):
    low, high = interval(counted(range(n)), p)  # each value is its own rank
    share = p / 100
    # The true percentile is below rank r with the probability that at most r values lie below it.
    if low is None:
        assert at_most(0, n, share) > 0.005
    else:
        assert at_most(int(low), n, share) <= 0.005 < at_most(int(low) + 1, n, share)
    if high is None:
        assert at_most(n - 1, n, share) < 0.995
    else:
        assert at_most(int(high), n, share) >= 0.995 > at_most(int(high) - 1, n, share)


@pytest.mark.integration
def test_interval_of_many_values_is_within_one_rank():
    n, share = 2000, 0.9  # a variance of 180: the approximation's
    low, high = interval(counted(range(n)), 90)
    assert at_most(int(low) - 1, n, share) <= 0.005 <= at_most(int(low) + 2, n, share)
    assert at_most(int(high) + 1, n, share) >= 0.995 >= at_most(int(high) - 2, n, share)


def test_interval_covers_99_of_100():
    rng = np.random.default_rng(1)
    true = -math.log(0.1) * 1000  # p90 of exponential values of mean 1000
    held = 0
    for _ in range(1000):
        low, high = interval(counted(rng.exponential(1000, 100)), 90)
        held += low <= true <= (math.inf if high is None else high)
    assert held >= 980


def test_small_sample_has_one_bound_or_none():
    low, high = interval(counted(range(100)), 99)
    assert (low, high) == (95, None)
    assert interval(counted([7]), 99) == (None, None)
    assert interval(Histogram(), 99) == (None, None)


def test_interval_of_fifty_million_values():
    histogram = Histogram()
    histogram.record(5, 25_000_000)
    histogram.record(9, 25_000_001)
    assert interval(histogram, 10) == (5, 5)
    assert interval(histogram, 99.9) == (9, 9)
