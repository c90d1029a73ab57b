"""Measured searches: what their truth rests on, and how brackets are counted."""

import math

import pytest

from bench.accuracy import searches
from bench.accuracy.searches import LOADS, MAX_ANSWER, MIN_ANSWER, PROMPT
from loadgen.engines.sim.capacity import forecast
from loadgen.engines.sim.settings import SimSettings


def test_scheduler_agrees_with_the_equations_of_the_simulator() -> None:
    (load,) = (each for each in LOADS if (each.over, each.figure) == ("rate", searches.mean_tpot))
    settings = SimSettings.of(**load.server)
    expected = forecast(settings, 60, PROMPT, (MIN_ANSWER + MAX_ANSWER) // 2)
    assert searches.figure_ms(load, 60) == pytest.approx(expected.tpot_ms, rel=0.01)


def test_as_many_as_there_are_slots_wait_for_none() -> None:
    (load,) = (
        each for each in LOADS if (each.over, each.figure) == ("concurrency", searches.p90_ttft)
    )
    assert searches.figure_ms(load, load.slots) < searches.figure_ms(load, load.slots + 4) / 1.5


@pytest.mark.parametrize(
    ("found", "near", "held", "narrow"),
    [
        ((60.0, 66.0), True, True, True),
        ((50.0, 66.0), False, True, True),
        ((50.0, math.inf), False, True, False),
        ((66.0, 70.0), False, False, True),
        ((64.0, 70.0), True, True, True),
        ((0.0, 50.0), False, False, False),
    ],
)
def test_brackets_of_a_truth_of_62(
    found: tuple[float, float], near: bool, held: bool, narrow: bool
) -> None:
    counted = searches.is_near(found, 62), searches.holds(found, 62), searches.is_narrow(found)
    assert counted == (near, held, narrow)
