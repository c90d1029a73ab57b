"""Blocks: how long they are, and what runs drawn anew from them come to."""

import math

import numpy as np
import pytest

from loadgen.stats import block_bootstrap
from loadgen.stats.block_bootstrap import RESAMPLES, correlated, length, long_enough, ratios, standard_error, tell
from loadgen.util.arrays import Floats


def remembering(share: float, count: int, seed: int) -> Floats:
    """A series in which each value keeps this share of the one before."""
    series, steps = np.zeros(count), np.random.default_rng(seed).normal(size=count)
    for at in range(1, count):
        series[at] = share * series[at - 1] + steps[at]
    return series


class TestLength:
    def test_it_is_twice_what_is_in_flight_and_no_less_than_the_cube_root_and_no_more_than_the_run(self) -> None:
        assert length(1000, 30.0) == 60
        assert length(1000, 1.0) == 10
        assert length(100, 80.0) == 100

    def test_what_does_not_remember_needs_none(self) -> None:
        assert np.median([correlated(np.random.default_rng(seed).normal(size=1000)) for seed in range(20)]) < 5
        assert correlated(np.ones(100)) == correlated(np.full(100, math.nan)) == 1.0

    def test_the_longer_requests_remember_the_longer_they_are(self) -> None:
        short, long = (
            np.median([correlated(remembering(share, 2000, seed)) for seed in range(20)]) for share in (0.5, 0.9)
        )
        assert 5 < short < long / 2

    def test_of_a_series_whose_law_is_known_they_are_as_long_as_that_says(self) -> None:
        """Of an AR(1) with share r the best is (1.5 * (2 r / (1 - r**2))**2 * n)**(1/3): Politis and White."""
        share, count = 0.7, 5000
        best = (1.5 * (2 * share / (1 - share**2)) ** 2 * count) ** (1 / 3)
        found = [correlated(remembering(share, count, seed)) for seed in range(20)]
        assert np.median(found) == pytest.approx(best, rel=0.12)

    def test_what_goes_up_and_down_needs_none(self) -> None:
        """As where two servers take turns, of which one is slower."""
        noise = np.random.default_rng(1).normal(size=1000)
        assert correlated(np.resize([1.0, 5.0], 1000) + noise) == 1.0
        assert correlated(np.resize([1.0, 1.0, 1.0, 1.0, 9.0], 1000) + noise) == 1.0

    def test_values_that_are_missing_tell_nothing(self) -> None:
        series = remembering(0.9, 2000, 1)
        series[::10] = math.nan
        assert correlated(series) > 10


class TestLongEnough:
    def test_it_is_twice_what_correlations_ask_and_no_less_than_what_is_in_flight(self) -> None:
        plain, remembers = remembering(0.0, 2000, 1), remembering(0.95, 2000, 1)
        assert long_enough(2000, 1.0, plain, remembers) == math.ceil(2 * correlated(remembers)) > length(2000, 1.0)
        assert long_enough(2000, 300.0, plain, remembers) == 600
        assert long_enough(2000, 1.0) == length(2000, 1.0)

    def test_five_of_them_tell_something(self) -> None:
        assert tell(100, 20)
        assert not tell(99, 20)


class TestRatios:
    def test_they_scatter_as_means_do(self) -> None:
        values = np.random.default_rng(1).normal(10.0, 2.0, 400)
        found = ratios(values, np.ones(400), 1)
        assert found.shape == (RESAMPLES,)
        assert found.std() == pytest.approx(2.0 / math.sqrt(400), rel=0.15)

    def test_what_comes_in_lumps_scatters_more_where_blocks_are_as_long_as_those(self) -> None:
        lumps = np.repeat(np.random.default_rng(1).normal(size=50), 20)
        apart, together = (ratios(lumps, np.ones(1000), each).std() for each in (1, 20))
        assert together > 3 * apart

    def test_the_same_requests_are_drawn_together(self) -> None:
        """So a constant difference stays what it is, however the values scatter."""
        values = np.random.default_rng(1).normal(size=100)
        one, other = (ratios(each, np.ones(100), 5) for each in (values, values + 3))
        assert other - one == pytest.approx(np.full(RESAMPLES, 3.0))
        assert not np.allclose(ratios(values, np.ones(100), 5, seed=1), one)

    def test_a_run_drawn_anew_is_as_long_as_the_run(self) -> None:
        """Of 501 requests in blocks of 100 a sixth whole one would take a sixth off the variance."""
        lumps = [np.repeat(np.random.default_rng(seed).normal(size=6), 100)[:501] for seed in range(40)]
        found = [(ratios(each, np.ones(501), 100).var(), ratios(each[:500], np.ones(500), 100).var()) for each in lumps]
        assert np.median([one / other for one, other in found]) == pytest.approx(1.0, abs=0.08)

    def test_where_nothing_counts_there_is_no_ratio(self) -> None:
        assert np.isnan(ratios(np.zeros(10), np.zeros(10), 2)).all()

    def test_a_block_that_reaches_beyond_the_end_goes_on_at_the_beginning(self) -> None:
        values = np.arange(50.0)
        drawn = np.random.default_rng(0).integers(50, size=(RESAMPLES, 5))
        sums = np.array([sum(values[(start + step) % 50] for step in range(10)) for start in range(50)])
        assert (block_bootstrap.ratios(values, np.ones(50), 10) == sums[drawn].sum(axis=1) / 50).all()


class TestStandardError:
    def test_it_is_that_of_as_many_values_as_there_are_blocks(self) -> None:
        drawn = np.random.default_rng(1).normal(size=RESAMPLES)
        error, df = standard_error(drawn, 501, 100)
        assert error == pytest.approx(drawn.std(ddof=1) * math.sqrt(5.01 / 4.01))
        assert df == pytest.approx(4.01)
