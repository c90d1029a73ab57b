"""Block bootstrap: the length of blocks, and the spread of resampled ratios."""

import math

import numpy as np
import pytest

from loadgen.stats.block_bootstrap import (
    RESAMPLES,
    block_length,
    effective_sample_size,
    enough_blocks,
    politis_white_length,
    resample_ratio,
    standard_error,
)
from loadgen.util.arrays import Floats


def autoregressive(share: float, count: int, seed: int) -> Floats:
    """A series in which each value keeps this share of the one before."""
    series, steps = np.zeros(count), np.random.default_rng(seed).normal(size=count)
    for at in range(1, count):
        series[at] = share * series[at - 1] + steps[at]
    return series


class TestBlockLength:
    def test_concurrency_and_cube_root_bound_it(self) -> None:
        assert block_length(1000, 30.0) == 60
        assert block_length(1000, 1.0) == 10
        assert block_length(100, 80.0) == 100

    def test_independent_values_need_no_blocks(self) -> None:
        assert (
            np.median(
                [
                    politis_white_length(np.random.default_rng(seed).normal(size=1000))
                    for seed in range(20)
                ]
            )
            < 5
        )
        assert (
            politis_white_length(np.ones(100))
            == politis_white_length(np.full(100, math.nan))
            == 1.0
        )

    def test_longer_memory_makes_longer_blocks(self) -> None:
        short, long = (
            np.median(
                [politis_white_length(autoregressive(share, 2000, seed)) for seed in range(20)]
            )
            for share in (0.5, 0.9)
        )
        assert 5 < short < long / 2

    def test_length_for_ar1_is_the_theoretical_one(self) -> None:
        """Of an AR(1) with share r the best is (1.5 * (2 r / (1 - r**2))**2 * n)**(1/3): Politis
        and White.
        """
        share, count = 0.7, 5000
        best = (1.5 * (2 * share / (1 - share**2)) ** 2 * count) ** (1 / 3)
        found = [politis_white_length(autoregressive(share, count, seed)) for seed in range(20)]
        assert np.median(found) == pytest.approx(best, rel=0.12)

    def test_negative_correlation_needs_no_blocks(self) -> None:
        """As where two servers take turns, of which one is slower."""
        noise = np.random.default_rng(1).normal(size=1000)
        assert politis_white_length(np.resize([1.0, 5.0], 1000) + noise) == 1.0
        assert politis_white_length(np.resize([1.0, 1.0, 1.0, 1.0, 9.0], 1000) + noise) == 1.0

    def test_missing_values_are_skipped(self) -> None:
        series = autoregressive(0.9, 2000, 1)
        series[::10] = math.nan
        assert politis_white_length(series) > 10


class TestBlockLengthOfSeries:
    def test_correlations_and_concurrency_bound_it(self) -> None:
        plain, remembers = autoregressive(0.0, 2000, 1), autoregressive(0.95, 2000, 1)
        assert (
            block_length(2000, 1.0, plain, remembers)
            == math.ceil(2 * politis_white_length(remembers))
            > block_length(2000, 1.0)
        )
        assert block_length(2000, 300.0, plain, remembers) == 600
        assert block_length(2000, 1.0) == 13

    def test_five_blocks_are_enough(self) -> None:
        assert enough_blocks(100, 20)
        assert not enough_blocks(99, 20)


class TestResampleRatio:
    def test_replicates_scatter_as_means_do(self) -> None:
        values = np.random.default_rng(1).normal(10.0, 2.0, 400)
        found = resample_ratio(values, np.ones(400), 1)
        assert found.shape == (RESAMPLES,)
        assert found.std() == pytest.approx(2.0 / math.sqrt(400), rel=0.15)

    def test_clusters_scatter_more_in_long_blocks(self) -> None:
        lumps = np.repeat(np.random.default_rng(1).normal(size=50), 20)
        apart, together = (resample_ratio(lumps, np.ones(1000), each).std() for each in (1, 20))
        assert together > 3 * apart

    def test_same_seed_draws_the_same_blocks(self) -> None:
        """So a constant difference stays what it is, however the values scatter."""
        values = np.random.default_rng(1).normal(size=100)
        one, other = (resample_ratio(each, np.ones(100), 5) for each in (values, values + 3))
        assert other - one == pytest.approx(np.full(RESAMPLES, 3.0))
        assert not np.allclose(resample_ratio(values, np.ones(100), 5, seed=1), one)

    def test_resample_is_as_long_as_the_series(self) -> None:
        """Of 501 requests in blocks of 100 a sixth whole one would take a sixth off the
        variance.
        """
        lumps = [
            np.repeat(np.random.default_rng(seed).normal(size=6), 100)[:501] for seed in range(40)
        ]
        found = [
            (
                resample_ratio(each, np.ones(501), 100).var(),
                resample_ratio(each[:500], np.ones(500), 100).var(),
            )
            for each in lumps
        ]
        assert np.median([one / other for one, other in found]) == pytest.approx(1.0, abs=0.08)

    def test_denominator_of_0_is_nan(self) -> None:
        assert np.isnan(resample_ratio(np.zeros(10), np.zeros(10), 2)).all()

    def test_blocks_wrap_around(self) -> None:
        values = np.arange(50.0)
        drawn = np.random.default_rng(0).integers(50, size=(RESAMPLES, 5))
        sums = np.array(
            [sum(values[(start + step) % 50] for step in range(10)) for start in range(50)]
        )
        assert (resample_ratio(values, np.ones(50), 10) == sums[drawn].sum(axis=1) / 50).all()


class TestStandardError:
    def test_standard_error_is_that_of_a_sample_of_blocks(self) -> None:
        drawn = np.random.default_rng(1).normal(size=RESAMPLES)
        error, df = standard_error(drawn, 501, 100)
        assert error == pytest.approx(drawn.std(ddof=1) * math.sqrt(5.01 / 4.01))
        assert df == pytest.approx(4.01)


class TestEffectiveSampleSize:
    def test_independent_values_count_each(self) -> None:
        values = np.random.default_rng(1).normal(10.0, 2.0, 400)
        replicates = resample_ratio(values, np.ones(400), 1)
        assert effective_sample_size(400, values.var() / 400, replicates) == pytest.approx(
            400, rel=0.2
        )

    def test_clusters_count_little_more_than_once(self) -> None:
        """Blocks that begin within a cluster cut it, which takes a third off the variance."""
        values = np.repeat(np.random.default_rng(1).normal(10.0, 2.0, 100), 20)
        replicates = resample_ratio(values, np.ones(2000), 20)
        assert effective_sample_size(2000, values.var() / 2000, replicates) == pytest.approx(
            150, rel=0.2
        )

    def test_equal_values_count_each(self) -> None:
        assert effective_sample_size(50, 0.0, np.full(RESAMPLES, 7.0)) == 50
