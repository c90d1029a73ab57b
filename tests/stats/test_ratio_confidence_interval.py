"""Bounds of shares and means: textbook numbers, dependent observations, and coverage."""

import numpy as np
import pytest

from loadgen.stats import distributions
from loadgen.stats.block_bootstrap import block_length
from loadgen.stats.ratio_confidence_interval import deciding_shares, mean_bounds, share_bounds
from loadgen.util.arrays import Floats


def wilson(share: float, n_eff: float, quantile: float) -> tuple[float, float]:
    scale = 1 + quantile**2 / n_eff
    middle = (share + quantile**2 / (2 * n_eff)) / scale
    half = quantile / scale * (share * (1 - share) / n_eff + quantile**2 / (4 * n_eff**2)) ** 0.5
    return middle - half, middle + half


def attained(good: Floats, in_flight: float, confidence: float) -> tuple[float, float]:
    length = block_length(len(good), in_flight, good.astype(float))
    return share_bounds(good.astype(float), np.ones(len(good)), length, confidence)


class TestShareBounds:
    def test_independent_observations_give_wilsons_interval(self) -> None:
        # 1600 of 2000, z = 1.96: 0.782 to 0.817.
        good = np.random.default_rng(1).permutation(np.resize([1.0, 1.0, 1.0, 1.0, 0.0], 2000))
        low, high = share_bounds(good, np.ones(2000), 1, 0.975)
        assert (low, high) == (pytest.approx(0.782, abs=2e-3), pytest.approx(0.817, abs=2e-3))

    def test_few_blocks_use_students_t(self) -> None:
        """Of six blocks that are each all good or all bad: t is 2.57 with five degrees of
        freedom, and z 1.96.
        """
        good = np.repeat([1.0, 1.0, 0.0, 1.0, 0.0, 1.0], 20)
        low, high = share_bounds(good, np.ones(120), 20, 0.975)
        students, normal = (
            wilson(share=4 / 6, n_eff=6.0, quantile=quantile) for quantile in (2.57, 1.96)
        )
        assert low == pytest.approx(students[0], abs=0.03)
        assert high == pytest.approx(students[1], abs=0.03)
        assert low < normal[0] - 0.03

    @pytest.mark.parametrize(("number", "n_eff"), [(3, 3), (5, 5), (10, 20), (30, 180)])
    def test_n_eff_without_a_miss_is_b_squared_by_5(self, number: int, n_eff: float) -> None:
        low, _ = share_bounds(np.ones(number * 40), np.ones(number * 40), 40, 0.95)
        t = distributions.student_two_sided_quantile(0.1, number - 1)
        assert low == pytest.approx(n_eff / (n_eff + t * t))

    def test_clusters_widen_the_interval(self) -> None:
        alone = np.random.default_rng(1).random(4000) < 0.95
        together = np.repeat(np.random.default_rng(1).random(100) < 0.95, 40)
        narrow, wide = (
            np.subtract(*attained(good, 20.0, 0.95)[::-1]) for good in (alone, together)
        )
        assert wide > 3 * narrow

    @pytest.mark.parametrize("burst", [1, 20])
    @pytest.mark.integration
    def test_coverage(self, burst: int) -> None:
        share, outside = 0.97, 0
        for seed in range(400):
            fates = np.random.default_rng(seed).random(4000 // burst) < share
            low, _ = attained(np.repeat(fates, burst), burst, 0.95)
            outside += low > share
        assert outside / 400 <= 0.08

    def test_gaps_count_as_their_requests(self) -> None:
        """A thousand gaps of a request are not a thousand requests."""
        requests, gaps = np.ones(100), np.full(100, 1000.0)
        assert share_bounds(gaps, gaps, 5, 0.95) == share_bounds(requests, requests, 5, 0.95)

    @pytest.mark.parametrize("seed", range(3))
    def test_uniform_gaps_count_as_requests(self, seed: int) -> None:
        good = (np.random.default_rng(seed).random(2000) < 0.9).astype(float)
        of_gaps, of_requests = (
            share_bounds(50 * good, np.full(2000, 50.0), 13, 0.95),
            share_bounds(good, np.ones(2000), 13, 0.95),
        )
        assert of_gaps == pytest.approx(of_requests)

    def test_below_five_blocks_each_is_one_observation(self) -> None:
        """Where nearly all were in flight at once, they are one event, however many they are."""
        good = np.arange(1000) % 10 > 0
        low, high = attained(good, 300.0, 0.95)
        assert low < 0.5
        assert high > 0.95
        assert attained(np.ones(1000), 300.0, 0.95)[0] < 0.5

    def test_clusters_count_at_any_concurrency(self) -> None:
        together = np.repeat(np.random.default_rng(1).random(100) < 0.95, 40)
        few, many = (
            np.subtract(*attained(together, in_flight, 0.95)[::-1]) for in_flight in (1.0, 40.0)
        )
        assert few == pytest.approx(many, rel=0.25)


class TestDecidingShares:
    @pytest.mark.parametrize("burst", [1, 20])
    @pytest.mark.parametrize("threshold", [0.5, 0.9, 0.99])
    def test_they_invert_the_bounds(self, burst: int, threshold: float) -> None:
        """A sample has its lower bound above a threshold exactly if its share is above the
        second, and so on.
        """
        decided = set()
        for share in (
            threshold - 0.06,
            threshold - 0.01,
            threshold,
            threshold + 0.005,
            threshold + 0.05,
        ):
            good = np.repeat(np.random.default_rng(1).random(4000 // burst) < share, burst).astype(
                float
            )
            total, length = np.ones(len(good)), max(16, 2 * burst)
            low, high = share_bounds(good, total, length, 0.97)
            first, second = deciding_shares(good, total, length, 0.97, threshold)
            assert first < threshold < second
            assert (low >= threshold) == (good.mean() >= second)
            assert (high < threshold) == (good.mean() < first)
            decided.add((low >= threshold, high < threshold))
        assert len(decided) > 1

    def test_few_observations_show_no_share(self) -> None:
        assert deciding_shares(np.ones(20), np.ones(20), 1, 0.97, 0.99)[1] > 1


class TestMeanBounds:
    def test_independent_values_give_the_normal_interval(self) -> None:
        low, high = mean_bounds(np.array([8.0, 12.0] * 200), np.ones(400), 8, 0.975)
        assert (low, high) == (
            pytest.approx(10 - 1.96 * 2 / 20, abs=0.02),
            pytest.approx(10 + 1.96 * 2 / 20, abs=0.02),
        )

    def test_upper_bound_is_that_of_the_reciprocal(self) -> None:
        """So it is farther away than the lower one, and infinite where nothing bounds the mean."""
        values = np.random.default_rng(1).exponential(10.0, 100)
        low, high = mean_bounds(values, np.ones(100), 5, 0.975)
        mean = values.mean()
        assert high == pytest.approx(mean * mean / low)
        assert mean_bounds(np.repeat([1.0, 100.0], 3), np.ones(6), 1, 0.999)[1] == np.inf

    def test_observations_without_a_value_do_not_count(self) -> None:
        total, of = np.array([10.0, 0.0] * 200), np.array([1.0, 0.0] * 200)
        assert mean_bounds(total, of, 6, 0.95) == (pytest.approx(10.0), pytest.approx(10.0))

    @pytest.mark.parametrize("burst", [1, 20])
    @pytest.mark.integration
    def test_coverage(self, burst: int) -> None:
        above, below = 0, 0
        for seed in range(400):
            values = np.repeat(np.random.default_rng(seed).exponential(10.0, 4000 // burst), burst)
            low, high = mean_bounds(values, np.ones(4000), max(16, 2 * burst), 0.95)
            above, below = above + (low > 10.0), below + (high < 10.0)
        assert max(above, below) / 400 <= 0.09
