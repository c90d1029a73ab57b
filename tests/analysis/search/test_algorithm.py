"""The search for the highest level: which levels are tried, and how it ends."""

import math

import numpy as np
import pytest

from loadgen.analysis.search.algorithm import End, Run, SearchRange, find_highest_level
from loadgen.analysis.search.criteria import RatioSample


def shares(good: list[bool], threshold: float = 0.99) -> RatioSample:
    return RatioSample(np.array(good, dtype=float), np.ones(len(good)), threshold)


def server(capacity: float, requests: int = 2000, runs: float = math.inf):
    """A server of which all requests are good up to its capacity, and none beyond; with the
    levels it was asked for.
    """
    asked: list[float] = []

    async def measure(level: float) -> Run | None:
        if len(asked) == runs:
            return None
        asked.append(level)
        return Run(
            [shares([level <= capacity] * requests)], in_flight=4.0, failed=level > 2 * capacity
        )

    return measure, asked


@pytest.mark.parametrize("start", [1.0, 37.0, 1000.0, 50_000.0])
async def test_edge_is_found_from_below_and_above(start: float) -> None:
    measure, _ = server(137.0)
    found = await find_highest_level(measure, start, SearchRange())
    assert found.end is End.EDGE
    assert found.level <= 137.0 < found.fails <= 1.05 * found.level


async def test_levels_are_doubled_then_bisected() -> None:
    measure, asked = server(137.0)
    await find_highest_level(measure, 50.0, SearchRange())
    assert asked[:3] == [50.0, 100.0, 200.0]
    assert asked[3] == pytest.approx(math.sqrt(100.0 * 200.0))


async def test_search_without_failure_is_a_floor() -> None:
    measure, asked = server(math.inf)
    found = await find_highest_level(measure, 100.0, SearchRange(max_level=300.0))
    assert (found.level, found.fails, found.end) == (300.0, math.inf, End.FLOOR)
    assert asked == [100.0, 200.0, 300.0]


async def test_search_out_of_runs_is_a_floor() -> None:
    measure, _ = server(137.0, runs=3)
    found = await find_highest_level(measure, 50.0, SearchRange())
    assert (found.level, found.fails, found.end) == (100.0, 200.0, End.FLOOR)
    assert found.tried == ((50.0, True), (100.0, True), (200.0, False))


async def test_search_without_a_met_level_ends_with_none() -> None:
    measure, _ = server(0.0)
    found = await find_highest_level(measure, 8.0, SearchRange(min_level=1.0))
    assert (found.level, found.end) == (0.0, End.NONE)
    assert [level for level, _ in found.tried] == [8.0, 4.0, 2.0, 1.0]


async def test_overloaded_level_is_run_once() -> None:
    measure, asked = server(10.0)
    await find_highest_level(measure, 25.0, SearchRange(min_level=25.0))
    assert asked == [25.0]


async def test_undecided_level_is_run_again() -> None:
    runs = 0

    async def measure(level: float) -> Run:
        nonlocal runs
        runs += 1
        # Too few to show 99 %; twice as many are enough.
        return Run([shares([True] * 250)], in_flight=1.0)

    found = await find_highest_level(measure, 10.0, SearchRange(max_level=10.0))
    assert runs == 2
    assert found.tried == ((10.0, True),)


async def test_undecided_level_fails_after_all_looks() -> None:
    async def measure(level: float) -> Run:
        return Run([shares([True] * 10)], in_flight=1.0)

    assert (await find_highest_level(measure, 10.0, SearchRange(min_level=10.0))).end is End.NONE


@pytest.mark.parametrize("start", [1, 16, 1000])
@pytest.mark.parametrize("capacity", [1, 2, 3, 7, 100])
async def test_whole_levels_end_at_neighbours(capacity: int, start: int) -> None:
    measure, asked = server(capacity)
    found = await find_highest_level(measure, start, SearchRange(min_level=1, nearest=round))
    assert found.end is End.EDGE
    assert found.level <= capacity < found.fails
    assert found.fails - found.level == 1 or found.fails <= 1.05 * found.level
    assert all(level == int(level) for level in asked)
    assert len(set(asked)) == len(asked)


async def test_whole_levels_end_below_1() -> None:
    measure, asked = server(0)
    found = await find_highest_level(measure, 4, SearchRange(min_level=1, nearest=round))
    assert (found.end, asked) == (End.NONE, [4, 2, 1])


async def test_level_must_meet_all_criteria() -> None:
    async def measure(level: float) -> Run:
        return Run([shares([True] * 2000), shares([level <= 30] * 2000, 0.5)], in_flight=1.0)

    found = await find_highest_level(measure, 10.0, SearchRange())
    assert found.level <= 30 < found.fails


async def test_a_level_for_which_no_runs_are_left_has_not_failed() -> None:
    left = 3

    async def measure(level: float) -> Run | None:
        nonlocal left
        if not left:
            return None
        left -= 1
        # 100 show nothing, nor do 200
        return Run([shares([True] * (2000 if level < 15 else 100))], in_flight=1.0)

    found = await find_highest_level(measure, 10.0, SearchRange())
    assert (found.level, found.fails, found.end) == (10.0, math.inf, End.FLOOR)
    assert found.tried == ((10.0, True), (20.0, None))


async def test_client_as_the_limit_ends_the_search() -> None:
    """What it would have counted for, neither way."""
    asked: list[float] = []

    async def measure(level: float) -> Run:
        asked.append(level)
        return (
            Run((), 0.0, inconclusive="busy")
            if level > 50
            else Run([shares([True] * 2000)], in_flight=1.0)
        )

    found = await find_highest_level(measure, 20.0, SearchRange())
    assert (found.level, found.fails, found.end) == (40.0, math.inf, End.CLIENT)
    assert found.tried == ((20.0, True), (40.0, True), (80.0, None))
    assert asked == [20.0, 40.0, 80.0, 80.0, 80.0]  # it may have been a passing disturbance


async def test_client_as_the_limit_once_does_not_end_it() -> None:
    runs = 0

    async def measure(level: float) -> Run:
        nonlocal runs
        runs += 1
        return (
            Run((), 0.0, inconclusive="busy")
            if runs == 1
            else Run([shares([True] * 2000)], in_flight=1.0)
        )

    found = await find_highest_level(measure, 10.0, SearchRange(max_level=10.0))
    assert found.tried == ((10.0, True),)


@pytest.mark.parametrize(
    ("looks", "asked_for"), [(1, [10.0]), (2, [10.0, 10.0]), (3, [10.0, 10.0, 10.0])]
)
async def test_level_that_so_many_runs_do_not_decide_has_failed(
    looks: int, asked_for: list[float]
) -> None:
    asked: list[float] = []

    async def measure(level: float) -> Run:
        asked.append(level)
        return Run([shares([True] * 60)], in_flight=1.0)  # shows nothing, nor do three of them

    found = await find_highest_level(measure, 10.0, SearchRange(min_level=10.0, looks=looks))
    assert (found.end, found.fails, asked) == (End.NONE, 10.0, asked_for)


async def test_inconclusive_runs_are_no_looks() -> None:
    runs = 0

    async def measure(level: float) -> Run:
        nonlocal runs
        runs += 1
        return (
            Run((), 0.0, inconclusive="busy")
            if runs < 3
            else Run([shares([True] * 2000)], in_flight=1.0)
        )

    found = await find_highest_level(measure, 10.0, SearchRange(max_level=10.0, looks=1))
    assert found.tried == ((10.0, True),)


def test_inconclusive_run_is_neither_met_nor_missed() -> None:
    assert Run((), 0.0, inconclusive="the client was the limit").met() is None
    assert Run([shares([False] * 2000)], 1.0, inconclusive="the client was the limit").met() is None
