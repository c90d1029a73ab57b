"""Banners: what one is to know of a run before its verdict and any of its numbers."""

from loadgen.checks import STEADY, Check
from loadgen.outcomes import Outcome
from loadgen.report import render
from tests.unit.making import failed, measured, result, steady
from tests.unit.test_report_console import below, split, value


def test_overload_is_named_before_the_verdict():
    for ok, expected in ((False, True), (True, False), (None, False)):
        checks = [Check(STEADY, ok, "1 to 90 in flight", "no rise", "lower the rate", counts=False, group="D")]
        lines = below(checks=checks)
        assert any(line.startswith("OVERLOADED: ") for line in lines) is expected


def test_what_is_not_ok_stands_above_the_verdict_with_the_cancelled_that_vllms_row_leaves_out():
    never_due = failed(2, Outcome.CANCELLED, ready=-5_000_000)  # the stamp is 0: never
    records = [steady(0), failed(1, Outcome.STATUS), never_due, failed(3, Outcome.CANCELLED)]
    made = result(measured(records, scheduled=8))
    rows, lines = split(render(made))
    assert value(rows, "Failed requests:") == "1"
    assert made["loadgen"]["error_rate"] == 7 / 8
    assert lines[1] == (
        "NOT OK: 87.50% of 8 requests: 1 failed, 1 cancelled after a turn that had failed, "
        "1 cancelled when the run ended early, 4 without an outcome."
    )
    assert lines[2].startswith("Verdict: ")


def test_what_was_cancelled_is_not_called_an_error():
    lines = below(records=[steady(0), failed(1, Outcome.CANCELLED)])
    assert "NOT OK: 50.00% of 2 requests: 1 cancelled when the run ended early." in lines
    assert not any("rror rate" in line for line in lines)


def test_that_all_are_ok_is_not_printed():
    assert not any("NOT OK" in line for line in below())
    assert not any("NOT OK" in line for line in below(records=[]))
    assert "NOT OK: 50.00% of 2 requests: 1 failed." in below(records=[steady(0), failed(1, Outcome.STATUS)])


def test_without_a_success_that_is_said_first():
    lines = below(records=[failed(0, Outcome.STATUS)])
    assert lines[1:3] == [
        "NO REQUEST SUCCEEDED: there is no latency to believe or to doubt.",
        "NOT OK: 100.00% of 1 request: 1 failed.",
    ]
