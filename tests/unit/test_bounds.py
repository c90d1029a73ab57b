"""Bounds of shares and means: textbook numbers, what requests that share their fate tell, and how often they hold."""

import numpy as np
import pytest

from loadgen.bounds import of_mean, of_share
from loadgen.schedule import Floats


def attained(good: Floats, in_flight: float, confidence: float) -> tuple[float, float]:
    return of_share(good.astype(float), np.ones(len(good)), in_flight, confidence)


class TestOfShare:
    def test_of_independent_requests_it_is_wilsons(self) -> None:
        # 8 of 10, z = 1.96: 0.490 to 0.943, as in every textbook.
        low, high = attained(np.array([True] * 8 + [False] * 2), 0.0, 0.975)
        assert (low, high) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))

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
        assert of_share(gaps, gaps, 0.0, 0.95) == of_share(requests, requests, 0.0, 0.95)

    @pytest.mark.parametrize("seed", range(3))
    def test_requests_whose_gaps_are_all_long_or_all_short_tell_as_much_as_requests(self, seed: int) -> None:
        good = (np.random.default_rng(seed).random(2000) < 0.9).astype(float)
        of_gaps, of_requests = (
            of_share(50 * good, np.full(2000, 50.0), 0.0, 0.95),
            of_share(good, np.ones(2000), 0.0, 0.95),
        )
        assert of_gaps == pytest.approx(of_requests)


class TestOfMean:
    def test_of_independent_values_it_is_the_normal_distributions(self) -> None:
        low, high = of_mean(np.array([8.0, 12.0] * 200), np.ones(400), 0.0, 0.975)
        assert (low, high) == (pytest.approx(10 - 1.96 * 2 / 20, abs=0.02), pytest.approx(10 + 1.96 * 2 / 20, abs=0.02))

    def test_requests_without_a_value_do_not_count(self) -> None:
        total, of = np.array([10.0, 0.0] * 200), np.array([1.0, 0.0] * 200)
        assert of_mean(total, of, 0.0, 0.95) == (pytest.approx(10.0), pytest.approx(10.0))

    @pytest.mark.parametrize("burst", [1, 20])
    def test_the_bounds_hold_as_often_as_they_say(self, burst: int) -> None:
        """A little less often where they are skewed, and few are independent."""
        above, below = 0, 0
        for seed in range(400):
            values = np.repeat(np.random.default_rng(seed).exponential(10.0, 4000 // burst), burst)
            low, high = of_mean(values, np.ones(4000), burst, 0.95)
            above, below = above + (low > 10.0), below + (high < 10.0)
        assert max(above, below) / 400 <= 0.12
