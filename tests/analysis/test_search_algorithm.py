"""The search for the highest level: what is tried, what is said of its end, and what a run must show."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from loadgen.analysis.search.algorithm import AGAIN, OF_A_LOOK, End, Goal, Run, Shown, highest


def shares(good: list[bool], wanted: float = 0.99) -> Shown:
    return Shown(np.array(good, dtype=float), np.ones(len(good)), wanted)


def server(capacity: float, requests: int = 2000, runs: float = math.inf):
    """A server of which all requests are good up to its capacity, and none beyond; with the levels it was asked for."""
    asked: list[float] = []

    async def measure(level: float) -> Run | None:
        if len(asked) == runs:
            return None
        asked.append(level)
        return Run([shares([level <= capacity] * requests)], in_flight=4.0, failed=level > 2 * capacity)

    return measure, asked


@pytest.mark.parametrize("start", [1.0, 37.0, 1000.0, 50_000.0])
async def test_the_edge_is_found_from_below_and_from_above(start: float) -> None:
    measure, _ = server(137.0)
    found = await highest(measure, start, Goal())
    assert found.end is End.EDGE
    assert found.level <= 137.0 < found.fails <= 1.05 * found.level


async def test_levels_are_doubled_and_then_the_gap_is_halved_in_logarithms() -> None:
    measure, asked = server(137.0)
    await highest(measure, 50.0, Goal())
    assert asked[:3] == [50.0, 100.0, 200.0]
    assert asked[3] == pytest.approx(math.sqrt(100.0 * 200.0))


async def test_what_never_fails_is_a_floor() -> None:
    measure, asked = server(math.inf)
    found = await highest(measure, 100.0, Goal(most=300.0))
    assert (found.level, found.fails, found.end) == (300.0, math.inf, End.FLOOR)
    assert asked == [100.0, 200.0, 300.0]


async def test_a_search_that_runs_out_of_runs_is_a_floor() -> None:
    measure, _ = server(137.0, runs=3)
    found = await highest(measure, 50.0, Goal())
    assert (found.level, found.fails, found.end) == (100.0, 200.0, End.FLOOR)
    assert found.tried == ((50.0, True), (100.0, True), (200.0, False))


async def test_where_no_level_is_good_enough_there_is_none() -> None:
    measure, _ = server(0.0)
    found = await highest(measure, 8.0, Goal(least=1.0))
    assert (found.level, found.end) == (0.0, End.NONE)
    assert [level for level, _ in found.tried] == [8.0, 4.0, 2.0, 1.0]


async def test_a_level_that_piles_up_is_not_measured_again() -> None:
    measure, asked = server(10.0)
    await highest(measure, 25.0, Goal(least=25.0))
    assert asked == [25.0]


async def test_a_level_is_measured_again_where_a_run_does_not_tell() -> None:
    runs = 0

    async def measure(level: float) -> Run:
        nonlocal runs
        runs += 1
        return Run([shares([True] * 250)], in_flight=1.0)  # too few to show 99 %; twice as many are enough

    found = await highest(measure, 10.0, Goal(most=10.0))
    assert runs == 2
    assert found.tried == ((10.0, True),)


def test_all_looks_at_a_level_hold_what_is_promised() -> None:
    """Sums of normal values, looked at once more with each: some look is beyond its bound in 5 % of cases."""
    sums = np.cumsum(np.random.default_rng(1).normal(size=(200_000, AGAIN)), axis=1)
    beyond = sums / np.sqrt(np.arange(1, AGAIN + 1)) > NormalDist().inv_cdf(OF_A_LOOK)
    assert beyond.any(axis=1).mean() == pytest.approx(0.05, abs=0.002)


async def test_what_cannot_be_shown_is_not_met() -> None:
    async def measure(level: float) -> Run:
        return Run([shares([True] * 10)], in_flight=1.0)

    assert (await highest(measure, 10.0, Goal(least=10.0))).end is End.NONE


@pytest.mark.parametrize("start", [1, 16, 1000])
@pytest.mark.parametrize("capacity", [1, 2, 3, 7, 100])
async def test_whole_levels_end_where_no_other_lies_between(capacity: int, start: int) -> None:
    measure, asked = server(capacity)
    found = await highest(measure, start, Goal(least=1, nearest=round))
    assert found.end is End.EDGE
    assert found.level <= capacity < found.fails
    assert found.fails - found.level == 1 or found.fails <= 1.05 * found.level
    assert all(level == int(level) for level in asked)
    assert len(set(asked)) == len(asked)


async def test_whole_levels_of_which_the_lowest_fails() -> None:
    measure, asked = server(0)
    found = await highest(measure, 4, Goal(least=1, nearest=round))
    assert (found.end, asked) == (End.NONE, [4, 2, 1])


async def test_all_demands_must_be_met_by_the_same_run() -> None:
    async def measure(level: float) -> Run:
        return Run([shares([True] * 2000), shares([level <= 30] * 2000, 0.5)], in_flight=1.0)

    found = await highest(measure, 10.0, Goal())
    assert found.level <= 30 < found.fails


async def test_a_level_for_which_no_runs_are_left_has_not_failed() -> None:
    left = 3

    async def measure(level: float) -> Run | None:
        nonlocal left
        if not left:
            return None
        left -= 1
        return Run([shares([True] * (2000 if level < 15 else 100))], in_flight=1.0)  # 100 show nothing, nor do 200

    found = await highest(measure, 10.0, Goal())
    assert (found.level, found.fails, found.end) == (10.0, math.inf, End.FLOOR)
    assert found.tried == ((10.0, True), (20.0, None))


async def test_where_the_client_is_the_limit_the_search_ends_and_says_so() -> None:
    """What it would have counted for, neither way."""
    asked: list[float] = []

    async def measure(level: float) -> Run:
        asked.append(level)
        return Run((), 0.0, untold="busy") if level > 50 else Run([shares([True] * 2000)], in_flight=1.0)

    found = await highest(measure, 20.0, Goal())
    assert (found.level, found.fails, found.end) == (40.0, math.inf, End.CLIENT)
    assert found.tried == ((20.0, True), (40.0, True), (80.0, None))
    assert asked == [20.0, 40.0, 80.0, 80.0, 80.0]  # it may have been a passing disturbance


async def test_a_client_that_was_the_limit_once_is_no_end() -> None:
    runs = 0

    async def measure(level: float) -> Run:
        nonlocal runs
        runs += 1
        return Run((), 0.0, untold="busy") if runs == 1 else Run([shares([True] * 2000)], in_flight=1.0)

    found = await highest(measure, 10.0, Goal(most=10.0))
    assert found.tried == ((10.0, True),)


def test_a_run_that_says_nothing_neither_meets_nor_misses_anything() -> None:
    assert Run((), 0.0, untold="the client was the limit").met() is None
    assert Run([shares([False] * 2000)], 1.0, untold="the client was the limit").met() is None


class TestShown:
    def test_a_share_is_met_missed_or_not_known(self) -> None:
        def of(good: int, bad: int) -> bool | None:
            return shares(list(np.random.default_rng(0).permutation([True] * good + [False] * bad)), 0.9).met(0.0)

        assert (of(950, 50), of(905, 95), of(870, 130)) == (True, None, False)

    def test_requests_that_turn_out_alike_show_less_whatever_was_in_flight(self) -> None:
        fates = ~np.isin(np.arange(100), (20, 70))
        together, apart = np.repeat(fates, 40), np.tile(fates, 40)
        assert shares(list(apart), 0.95).met(1.0) is True
        assert shares(list(together), 0.95).met(1.0) is None

    def test_a_mean_is_met_missed_or_not_known(self) -> None:
        def of(most: float) -> bool | None:
            values = np.array([9.0, 11.0] * 200)
            return Shown(values, np.ones(400), most, is_mean=True).met(0.0)

        assert (of(10.2), of(10.0), of(9.8)) == (True, None, False)

    def test_a_mean_of_nothing_is_not_known(self) -> None:
        nothing = Shown(np.zeros(5), np.zeros(5), 10.0, is_mean=True)
        assert (nothing.value, nothing.met(1.0)) == (None, None)
