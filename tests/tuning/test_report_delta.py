"""A difference as it is read: its direction, its bounds, and whether it is shown as a gain or a loss."""

import math

import pytest

from loadgen.report.html import Tone
from loadgen.stats.group_sequential import Comparison, Decision
from loadgen.tuning.report.delta import Delta


def compared(effect: float, low: float, high: float, *, more_is_better: bool = True) -> Delta:
    found = Delta.compared(Comparison(Decision.OPEN, effect, low, high, 3), more_is_better=more_is_better)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("effect", "low", "high", "tone"),
    [
        (0.05, 0.01, 0.09, Tone.GOOD),
        (0.05, -0.01, 0.11, Tone.QUIET),
        (-0.05, -0.11, 0.01, Tone.QUIET),
        (-0.05, -0.09, -0.01, Tone.BAD),
        (0.05, -1.0, math.inf, Tone.QUIET),
    ],
)
def test_a_gain_or_a_loss_is_one_only_if_its_bounds_say_so(effect: float, low: float, high: float, tone: Tone) -> None:
    assert compared(effect, low, high).tone is tone


def test_where_less_is_better_the_change_is_that_of_the_value_and_the_bounds_change_places() -> None:
    delta = compared(0.25, 0.0, 1.0, more_is_better=False)
    # 1 / 1.25 - 1, and likewise 1 / 2 - 1 and 1 / 1 - 1
    assert str(delta) == "-20.00% (-50.00% to 0.00%)"
    assert compared(0.25, 0.2, 1.0, more_is_better=False).tone is Tone.GOOD
    assert compared(-0.2, -0.5, -0.1, more_is_better=False).tone is Tone.BAD


def test_bounds_that_are_not_known_are_not_shown() -> None:
    assert str(compared(0.05, -1.0, math.inf)) == "+5.00% (not told yet)"
    assert str(compared(0.05, 0.01, 0.0901)) == "+5.00% (+1.00% to +9.01%)"


def test_runs_apart_have_no_bounds_and_single_ones_a_colour_by_their_sign() -> None:
    once = Delta.of_runs_apart(9.0, 10.0, more_is_better=True, single=True)
    assert (str(once), once.tone) == ("-10.00% (single runs)", Tone.BAD)
    apart = Delta.of_runs_apart(11.0, 10.0, more_is_better=True, single=False)
    assert (str(apart), apart.tone) == ("+10.00% (not told yet)", Tone.QUIET)


def test_without_a_common_block_there_is_no_difference() -> None:
    nothing = Comparison(Decision.OPEN, math.nan, -1.0, math.inf, 0)
    assert Delta.compared(nothing, more_is_better=True) is None
