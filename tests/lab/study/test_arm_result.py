"""The difference from a reference: its bounds, its direction and its text."""

import dataclasses
import math

import pytest

from loadgen.lab.study.execute.arm_result import Difference, Unbounded
from loadgen.stats.group_sequential import Comparison, Decision


def compared(effect: float, low: float, high: float, *, more_is_better: bool = True) -> Difference:
    comparison = Comparison(Decision.OPEN, effect, low, high, 3)
    found = Difference.from_comparison(comparison, more_is_better=more_is_better)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("effect", "low", "high", "direction"),
    [
        (0.05, 0.01, 0.09, 1),
        (0.05, -0.01, 0.11, 0),
        (-0.05, -0.11, 0.01, 0),
        (-0.05, -0.09, -0.01, -1),
        (0.05, -1.0, math.inf, 0),
        (0.05, 0.01, math.inf, 1),
        (0.05, -1.0, 0.09, 0),
        (-0.05, -1.0, -0.01, -1),
    ],
)
def test_direction_needs_a_bound_on_the_side_of_zero(
    effect: float, low: float, high: float, direction: int
) -> None:
    assert compared(effect, low, high).direction == direction


def test_less_is_better_inverts_value_and_bounds() -> None:
    difference = compared(0.25, 0.0, 1.0, more_is_better=False)
    # 1 / 1.25 - 1, 1 / 2 - 1 and 1 / 1 - 1
    assert difference.text() == "-20.00% (-50.00% to 0.00%)"
    assert compared(0.25, 0.2, 1.0, more_is_better=False).direction == 1
    assert compared(-0.2, -0.5, -0.1, more_is_better=False).direction == -1


def test_comparison_without_bounds_was_disturbed() -> None:
    assert compared(0.05, -1.0, math.inf).text() == "+5.00% (too few undisturbed starts for bounds)"
    assert compared(0.05, 0.01, 0.0901).text() == "+5.00% (+1.00% to +9.01%)"


@pytest.mark.parametrize(
    ("low", "high", "more_is_better", "text"),
    [
        (0.0, math.inf, True, "+25.0% (at least 0.0%)"),
        (0.0, math.inf, False, "-20.0% (at most 0.0%)"),
        (-1.0, 0.25, False, "-20.0% (at least -20.0%)"),
    ],
)
def test_a_single_bound_is_said_in_words(
    low: float, high: float, more_is_better: bool, text: str
) -> None:
    assert compared(0.25, low, high, more_is_better=more_is_better).text(1) == text


def test_runs_apart_and_single_runs_have_no_bounds_and_no_direction() -> None:
    once = Difference.without_bounds(9.0, 10.0, Unbounded.SINGLE_RUNS, more_is_better=True)
    assert (once.text(), once.direction) == ("-10.00% (single runs)", 0)
    apart = Difference.without_bounds(11.0, 10.0, Unbounded.APART, more_is_better=True)
    assert (apart.text(), apart.direction) == ("+10.00% (not measured in the same blocks)", 0)


def test_other_work_is_said_beside_the_difference() -> None:
    once = Difference.without_bounds(11.0, 10.0, Unbounded.SINGLE_RUNS, more_is_better=True)
    other = dataclasses.replace(once, other_work="answers 3.1% shorter")
    assert other.text() == "+10.00% (single runs; answers 3.1% shorter)"


def test_difference_is_none_without_a_common_block() -> None:
    nothing = Comparison(Decision.OPEN, math.nan, -1.0, math.inf, 0)
    assert Difference.from_comparison(nothing, more_is_better=True) is None
