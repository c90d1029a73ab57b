"""Banners: what must be known of a run before its verdict and numbers."""

from loadgen.checks import PILE_UP, Check
from loadgen.core.outcome import Outcome
from loadgen.metrics.recorder import Recorder
from tests.helpers.run_facts import START, failed, measured, result, steady
from tests.helpers.saved_json import render
from tests.report.test_console import below, split, value


def test_overload_is_named_before_the_verdict():
    for ok, expected in ((False, True), (True, False), (None, False)):
        checks = [
            Check(
                PILE_UP,
                ok,
                "1 to 90 in flight",
                "no rise",
                "lower the rate",
                counts=False,
                group="D",
            )
        ]
        lines = below(checks=checks)
        assert any(line.startswith("OVERLOADED: ") for line in lines) is expected


def test_failures_are_named_in_the_last_line():
    never_due = failed(2, Outcome.CANCELLED, ready=-5_000_000)  # the stamp is 0: never
    records = [steady(0), failed(1, Outcome.STATUS), never_due, failed(3, Outcome.CANCELLED)]
    made = result(measured(records, scheduled=8))
    rows, lines = split(render(made))
    assert value(rows, "Failed requests:") == "1"
    assert made["loadgen"]["error_rate"] == 2 / 3
    assert lines[-1].startswith(
        "NOT OK 2 of 3 failed (503: 1, never sent after a failed turn: 1) | measured "
    )


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
    assert "PARTIAL: interrupted; requests: 1 cut off, 3 never sent." in lines


def test_success_of_all_requests_is_not_printed():
    assert not any("NOT OK" in line for line in below())
    assert not any("NOT OK" in line for line in below(records=[]))
    assert below(records=[steady(0), failed(1, Outcome.STATUS)])[-1].startswith(
        "NOT OK 1 of 2 failed (503: 1) | "
    )


def test_without_a_success_that_is_said_before_the_verdict():
    lines = below(records=[failed(0, Outcome.STATUS)])
    place = lines.index("NO REQUEST SUCCEEDED: there are no latencies.")
    assert lines[place + 1].startswith("Verdict: ")
    assert lines[-1].startswith("NOT OK 1 of 1 failed (503: 1) | ")
