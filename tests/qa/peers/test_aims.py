"""The aims of loadgen: each is met, missed or not measured, with the value found."""

import pytest

from bench.peers.aims import Aim, aims, excess, start_aims
from bench.peers.costs import Costs
from bench.peers.made_up import TRUE, trial

# 40 us a token
TOOLS = {"slow": Costs({"S": [trial("S", cpu_s=5.0)], "W1": [trial("W1", cpu_s=9.0)]})}


def ours(cpu_s: float = 1.5, measuring_mb: float = 60.0) -> Costs:
    light = trial("W1", cpu_s=cpu_s, measuring_mb=measuring_mb)
    return Costs({"S": [trial("S", cpu_s=1.0)], "W1": [light]})


def heavy(says: str = "VALID", error_ms: float = 0.0) -> Costs:
    told = TRUE | {"ttft": {50: 20.0, 99: 20.4 + error_ms}}
    return Costs({"W3": [trial("W3", says=says, told=told)]})


def judged(found: list[Aim]) -> list[bool | None]:
    return [aim.met for aim in found]


def test_all_can_be_met() -> None:
    assert judged(aims(ours(), heavy(error_ms=0.49), TOOLS)) == [True] * 6


def test_each_can_be_missed() -> None:
    found = aims(ours(cpu_s=1.7, measuring_mb=61.0), heavy("SUSPECT: lag p99", 0.6), TOOLS)
    assert judged(found) == [False, False, False, False, True, False]
    assert found[0].cells == ("W3 on one core: VALID", "SUSPECT: lag p99", "**missed**")


def test_unmeasured_aims_are_neither_met_nor_missed() -> None:
    found = aims(Costs({}), Costs({}), {})
    assert judged(found) == [None] * 6
    assert {aim.cells[-1] for aim in found} == {"n/a"}


def test_start_is_held_against_the_rival() -> None:
    ours, rival = Costs({"S": [trial("S", cpu_s=1.2)]}), Costs({"S": [trial("S", cpu_s=1.0)]})
    found = start_aims(ours, Costs({}), rival)
    assert judged(found) == [True, None, False]
    assert found[-1].found == "1.20, 1.20 of 1.00"
    assert judged(start_aims(Costs({}), Costs({}), Costs({}))) == [None] * 3


def test_an_error_is_a_share_of_half_a_millisecond_or_of_a_hundredth() -> None:
    assert excess(trial(told=TRUE | {"itl": {50: 20.25, 99: 20.4}})) == pytest.approx(0.5)
    assert excess(trial()) == 0.0
