"""Banners: what must be known of a run before its verdict and numbers."""

from loadgen.checks import STEADY, Check
from loadgen.core.outcome import Outcome
from loadgen.metrics.recorder import Recorder
from tests.helpers.run_facts import START, failed, measured, result, steady
from tests.helpers.saved_json import render
from tests.report.test_console import below, split, value


def test_overload_is_named_before_the_verdict():
    for ok, expected in ((False, True), (True, False), (None, False)):
        checks = [Check(STEADY, ok, "1 to 90 in flight", "no rise", "lower the rate", counts=False, group="D")]
        lines = below(checks=checks)
        assert any(line.startswith("OVERLOADED: ") for line in lines) is expected


def test_failures_are_named_above_the_verdict_and_in_it():
    never_due = failed(2, Outcome.CANCELLED, ready=-5_000_000)  # the stamp is 0: never
    records = [steady(0), failed(1, Outcome.STATUS), never_due, failed(3, Outcome.CANCELLED)]
    made = result(measured(records, scheduled=8))
    rows, lines = split(render(made))
    assert value(rows, "Failed requests:") == "1"
    assert made["loadgen"]["error_rate"] == 2 / 3
    assert lines[1] == "NOT OK: 66.67% of 3 requests failed (status(503) 1, never sent after a failed turn 1)."
    assert lines[2].startswith("Verdict: NOT OK, 66.67% of 3 requests failed; the measurement is ")


def test_cancelled_requests_are_not_called_errors():
    lines = below(records=[steady(0), failed(1, Outcome.CANCELLED)])
    assert not any("NOT OK" in line or "rror rate" in line for line in lines)


def test_an_interrupted_run_tells_what_was_never_sent_from_what_was_in_flight():
    made = Recorder(START, 5)
    for record in (steady(0), failed(1, Outcome.CANCELLED)):
        made.add(record)
    made.add_never_sent(2, 3, Outcome.CANCELLED, "interrupted")
    own = result(made.snapshot("interrupted"))["loadgen"]
    assert own["cancelled"] == {"never_sent": 3, "in_flight": 1}
    assert own["error_rate"] == 0
    _, lines = split(render(result(made.snapshot("interrupted"))))
    assert "PARTIAL: interrupted; 3 requests never sent, 1 cancelled in flight." in lines


def test_success_of_all_requests_is_not_printed():
    assert not any("NOT OK" in line for line in below())
    assert not any("NOT OK" in line for line in below(records=[]))
    assert "NOT OK: 50.00% of 2 requests failed (status(503) 1)." in below(
        records=[steady(0), failed(1, Outcome.STATUS)]
    )


def test_without_a_success_that_is_said_first():
    lines = below(records=[failed(0, Outcome.STATUS)])
    assert lines[1:3] == [
        "NO REQUEST SUCCEEDED: there are no latencies.",
        "NOT OK: 100.00% of 1 request failed (status(503) 1).",
    ]
