"""Banners: what must be known of a run before its verdict and numbers."""

from loadgen.core.outcome import Outcome
from loadgen.metrics.recorder import Recorder
from tests.helpers.console_lines import section
from tests.helpers.console_reports import below, split, value
from tests.helpers.run_facts import START, failed, measured, result, steady
from tests.helpers.saved_json import render


def test_failures_are_named_in_the_last_line():
    never_due = failed(2, Outcome.CANCELLED, ready=-5_000_000)  # the stamp is 0: never
    records = [steady(0), failed(1, Outcome.STATUS), never_due, failed(3, Outcome.CANCELLED)]
    made = result(measured(records, scheduled=8))
    rows, lines = split(render(made))
    assert value(rows, "Failed requests:") == "1"
    assert made["loadgen"]["error_rate"] == 2 / 3
    assert lines[-1].startswith(
        "FAILED: 2 of 3 requests failed (503: 1, never sent after a failed turn: 1) | "
    )


def test_cancelled_requests_are_not_called_errors():
    lines = below(records=[steady(0), failed(1, Outcome.CANCELLED)])
    assert not any("failed" in line or "rror rate" in line for line in lines)


def test_an_interrupted_run_tells_what_was_never_sent_from_what_was_in_flight():
    made = Recorder(START, 5)
    for record in (steady(0), failed(1, Outcome.CANCELLED)):
        made.add(record)
    made.add_never_sent(2, 3, Outcome.CANCELLED, "interrupted")
    own = result(made.snapshot("interrupted"))["loadgen"]
    assert own["cancelled"] == {"never_sent": 3, "in_flight": 1}
    assert own["error_rate"] == 0
    _, lines = split(render(result(made.snapshot("interrupted"))))
    assert section(lines, "Reasons and advice") == [
        "PARTIAL: interrupted; requests: 1 cut off, 3 never sent."
    ]
