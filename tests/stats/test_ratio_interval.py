"""Bounds of shares and means: textbook numbers, what requests that share their fate tell, and how often they hold."""

import numpy as np
import pytest

from loadgen.stats import student_t
from loadgen.stats.block_bootstrap import long_enough
from loadgen.stats.ratio_interval import of_mean, of_share
from loadgen.util.arrays import Floats


def of_wilson(share: float, n_eff: float, quantile: float) -> tuple[float, float]:
    scale = 1 + quantile**2 / n_eff
    middle = (share + quantile**2 / (2 * n_eff)) / scale
    half = quantile / scale * (share * (1 - share) / n_eff + quantile**2 / (4 * n_eff**2)) ** 0.5
    return middle - half, middle + half


def attained(good: Floats, in_flight: float, confidence: float) -> tuple[float, float]:
    length = long_enough(len(good), in_flight, good.astype(float))
    return of_share(good.astype(float), np.ones(len(good)), length, confidence)


class TestOfShare:
    def test_of_independent_requests_it_is_wilsons(self) -> None:
        # 1600 of 2000, z = 1.96: 0.782 to 0.817.
        good = np.random.default_rng(1).permutation(np.resize([1.0, 1.0, 1.0, 1.0, 0.0], 2000))
        low, high = of_share(good, np.ones(2000), 1, 0.975)
        assert (low, high) == (pytest.approx(0.782, abs=2e-3), pytest.approx(0.817, abs=2e-3))

    def test_few_blocks_bound_it_by_students_t(self) -> None:
        """Of six blocks that are each all good or all bad: t is 2.57 with five degrees of freedom, and z 1.96."""
        good = np.repeat([1.0, 1.0, 0.0, 1.0, 0.0, 1.0], 20)
        low, high = of_share(good, np.ones(120), 20, 0.975)
        students, normal = (of_wilson(share=4 / 6, n_eff=6.0, quantile=quantile) for quantile in (2.57, 1.96))
        assert low == pytest.approx(students[0], abs=0.03)
        assert high == pytest.approx(students[1], abs=0.03)
        assert low < normal[0] - 0.03

    @pytest.mark.parametrize(("number", "n_eff"), [(3, 3), (5, 5), (10, 20), (30, 180)])
    def test_blocks_without_a_miss_tell_no_more_than_b_squared_by_5(self, number: int, n_eff: float) -> None:
        low, _ = of_share(np.ones(number * 40), np.ones(number * 40), 40, 0.95)
        t = student_t.beyond(0.1, number - 1)
        assert low == pytest.approx(n_eff / (n_eff + t * t))

    def test_requests_that_share_their_fate_tell_less(self) -> None:
        alone = np.random.default_rng(1).random(4000) < 0.95
        together = np.repeat(np.random.default_rng(1).random(100) < 0.95, 40)
        narrow, wide = (np.subtract(*attained(good, 20.0, 0.95)[::-1]) for good in (alone, together))
        assert wide > 3 * narrow

    @pytest.mark.parametrize("burst", [1, 20])
    def test_the_bounds_hold_as_often_as_they_say(self, burst: int) -> None:
        share, outside = 0.97, 0
        for seed in range(400):
            fates = np.random.default_rng(seed).random(4000 // burst) < share
            low, _ = attained(np.repeat(fates, burst), burst, 0.95)
            outside += low > share
        assert outside / 400 <= 0.08

    def test_gaps_tell_no_more_than_as_many_requests(self) -> None:
        """A thousand gaps of a request are not a thousand requests."""
        requests, gaps = np.ones(100), np.full(100, 1000.0)
        assert of_share(gaps, gaps, 5, 0.95) == of_share(requests, requests, 5, 0.95)

    @pytest.mark.parametrize("seed", range(3))
    def test_requests_whose_gaps_are_all_long_or_all_short_tell_as_much_as_requests(self, seed: int) -> None:
        good = (np.random.default_rng(seed).random(2000) < 0.9).astype(float)
        of_gaps, of_requests = (
            of_share(50 * good, np.full(2000, 50.0), 13, 0.95),
            of_share(good, np.ones(2000), 13, 0.95),
        )
        assert of_gaps == pytest.approx(of_requests)

    def test_of_fewer_than_five_blocks_each_tells_as_much_as_one_request(self) -> None:
        """Where nearly all were in flight at once, they are one event, however many they are."""
        good = np.arange(1000) % 10 > 0
        low, high = attained(good, 300.0, 0.95)
        assert low < 0.5
        assert high > 0.95
        assert attained(np.ones(1000), 300.0, 0.95)[0] < 0.5

    def test_what_requests_turn_out_to_have_in_common_counts_whatever_was_in_flight(self) -> None:
        together = np.repeat(np.random.default_rng(1).random(100) < 0.95, 40)
        few, many = (np.subtract(*attained(together, in_flight, 0.95)[::-1]) for in_flight in (1.0, 40.0))
        assert few == pytest.approx(many, rel=0.25)


class TestOfMean:
    def test_of_independent_values_it_is_the_normal_distributions(self) -> None:
        low, high = of_mean(np.array([8.0, 12.0] * 200), np.ones(400), 8, 0.975)
        assert (low, high) == (pytest.approx(10 - 1.96 * 2 / 20, abs=0.02), pytest.approx(10 + 1.96 * 2 / 20, abs=0.02))

    def test_the_upper_bound_is_that_of_the_reciprocal(self) -> None:
        """So it is farther away than the lower one, and infinite where nothing bounds the mean."""
        values = np.random.default_rng(1).exponential(10.0, 100)
        low, high = of_mean(values, np.ones(100), 5, 0.975)
        mean = values.mean()
        assert high == pytest.approx(mean * mean / low)
        assert of_mean(np.repeat([1.0, 100.0], 3), np.ones(6), 1, 0.999)[1] == np.inf

    def test_requests_without_a_value_do_not_count(self) -> None:
        total, of = np.array([10.0, 0.0] * 200), np.array([1.0, 0.0] * 200)
        assert of_mean(total, of, 6, 0.95) == (pytest.approx(10.0), pytest.approx(10.0))

    @pytest.mark.parametrize("burst", [1, 20])
    def test_the_bounds_hold_as_often_as_they_say(self, burst: int) -> None:
        above, below = 0, 0
        for seed in range(400):
            values = np.repeat(np.random.default_rng(seed).exponential(10.0, 4000 // burst), burst)
            low, high = of_mean(values, np.ones(4000), max(16, 2 * burst), 0.95)
            above, below = above + (low > 10.0), below + (high < 10.0)
        assert max(above, below) / 400 <= 0.09
