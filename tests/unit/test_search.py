"""The search for the highest rate: what is tried, what is said of its end, and what a run must show."""

import math

import numpy as np
import pytest

from loadgen.search import End, Goal, Run, attained, highest_rate


def server(capacity: float, requests: int = 2000):
    """A server of which all requests are good up to its capacity, and none beyond; with the rates it was asked for."""
    asked: list[float] = []

    async def measure(rate: float) -> Run:
        asked.append(rate)
        return Run([rate <= capacity] * requests, in_flight=4.0, overloaded=rate > 2 * capacity)

    return measure, asked


@pytest.mark.parametrize("start", [1.0, 37.0, 1000.0, 50_000.0])
async def test_the_edge_is_found_from_below_and_from_above(start: float) -> None:
    measure, _ = server(137.0)
    found = await highest_rate(measure, start, Goal(runs=40))
    assert found.end is End.EDGE
    assert found.rate <= 137.0 < found.fails <= 1.05 * found.rate


async def test_rates_are_doubled_and_then_the_gap_is_halved_in_logarithms() -> None:
    measure, asked = server(137.0)
    await highest_rate(measure, 50.0, Goal())
    assert asked[:3] == [50.0, 100.0, 200.0]
    assert asked[3] == pytest.approx(math.sqrt(100.0 * 200.0))


async def test_what_never_fails_is_a_floor() -> None:
    measure, asked = server(math.inf)
    found = await highest_rate(measure, 100.0, Goal(most=300.0))
    assert (found.rate, found.fails, found.end) == (300.0, math.inf, End.FLOOR)
    assert asked == [100.0, 200.0, 300.0]


async def test_a_search_that_runs_out_of_runs_is_a_floor() -> None:
    measure, _ = server(137.0)
    found = await highest_rate(measure, 50.0, Goal(runs=3))
    assert (found.rate, found.fails, found.end) == (100.0, 200.0, End.FLOOR)


async def test_where_no_rate_is_good_enough_there_is_none() -> None:
    measure, _ = server(0.0)
    found = await highest_rate(measure, 8.0, Goal(least=1.0))
    assert (found.rate, found.end) == (0.0, End.NONE)
    assert [rate for rate, _ in found.tried] == [8.0, 4.0, 2.0, 1.0]


async def test_a_rate_that_piles_up_is_not_measured_again() -> None:
    measure, asked = server(10.0)
    await highest_rate(measure, 25.0, Goal(runs=1))
    assert asked == [25.0]


async def test_a_rate_is_measured_again_where_a_run_does_not_tell() -> None:
    runs = 0

    async def measure(rate: float) -> Run:
        nonlocal runs
        runs += 1
        return Run([True] * 200, in_flight=1.0)  # too few to show 99 %; twice as many are enough

    found = await highest_rate(measure, 10.0, Goal(most=10.0))
    assert runs == 2
    assert found.tried == ((10.0, True),)


async def test_what_cannot_be_shown_is_not_met() -> None:
    async def measure(rate: float) -> Run:
        return Run([True] * 10, in_flight=1.0)

    assert (await highest_rate(measure, 10.0, Goal(least=10.0))).end is End.NONE


class TestAttained:
    def test_of_independent_requests_it_is_wilsons(self) -> None:
        # 8 of 10, z = 1.96: 0.490 to 0.943, as in every textbook.
        low, high = attained([True] * 8 + [False] * 2, 0.0, 0.975)
        assert (low, high) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))

    def test_requests_that_share_their_fate_tell_less(self) -> None:
        alone = np.random.default_rng(1).random(4000) < 0.95
        together = np.repeat(np.random.default_rng(1).random(100) < 0.95, 40)
        narrow, wide = (np.subtract(*attained(list(good), 20.0, 0.95)[::-1]) for good in (alone, together))
        assert wide > 3 * narrow

    @pytest.mark.parametrize("burst", [1, 20])
    def test_the_bounds_hold_as_often_as_they_say(self, burst: int) -> None:
        share, outside = 0.97, 0
        for seed in range(400):
            fates = np.random.default_rng(seed).random(4000 // burst) < share
            low, _ = attained(list(np.repeat(fates, burst)), burst, 0.95)
            outside += low > share
        assert outside / 400 <= 0.08
