"""Each outcome says what ended a request; where the request counts follows from that alone."""

import numpy as np
import pytest

from loadgen.core.outcome import Cause, Outcome, cause_of, ended_by, is_failure
from loadgen.core.request_rows import CANCELLED, FAILED, LEFT, RequestRows
from loadgen.metrics.failures import Failures
from loadgen.metrics.progress import Progress
from loadgen.metrics.snapshot import ROW_COLUMNS
from tests.helpers.run_facts import START, failed

NOT_OK = [outcome for outcome in Outcome if outcome is not Outcome.OK]
MARKS = {
    Cause.SERVER: FAILED,
    Cause.CLIENT: FAILED,
    Cause.RUN: CANCELLED,
    Cause.USER: LEFT,
}


def test_those_that_are_no_fault_of_the_server_say_so() -> None:
    assert {outcome: outcome.cause for outcome in Outcome if outcome.cause is not Cause.SERVER} == {
        Outcome.OK: Cause.ANSWER,
        Outcome.CLIENT_ERROR: Cause.CLIENT,
        Outcome.CANCELLED: Cause.RUN,
        Outcome.DISCONNECTED: Cause.USER,
    }


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("ok", Cause.ANSWER),
        ("status(404)", Cause.SERVER),
        ("client_error", Cause.CLIENT),
        ("of_a_later_version", Cause.SERVER),
    ],
)
def test_the_class_of_a_request_has_the_cause_of_its_outcome(name: str, cause: Cause) -> None:
    assert cause_of(name) is cause


def test_requests_are_counted_by_cause() -> None:
    outcomes = {"ok": 5, "status(404)": 2, "timeout": 1, "client_error": 3}
    assert ended_by(outcomes, Cause.SERVER) == 3
    assert ended_by(outcomes, Cause.SERVER, Cause.CLIENT) == 6
    assert ended_by(outcomes, Cause.USER) == 0


@pytest.mark.parametrize("outcome", Outcome)
def test_an_error_rate_follows_from_the_cause(outcome: Outcome) -> None:
    cause = outcome.cause
    failures = Failures.among({outcome: 1}, never_due=0)
    assert failures.server == (cause is Cause.SERVER)
    assert failures.client == (cause is Cause.CLIENT)
    assert failures.of == (cause not in (Cause.RUN, Cause.USER))
    assert failures.failed == is_failure(outcome)


@pytest.mark.parametrize("outcome", NOT_OK)
def test_the_progress_of_a_run_follows_from_the_cause(outcome: Outcome) -> None:
    progress = Progress("running", failures={outcome: 1})
    assert progress.not_ok == is_failure(outcome)
    assert progress.cancelled == (outcome.cause is Cause.RUN)
    assert progress.disconnected == (outcome.cause is Cause.USER)


@pytest.mark.parametrize("outcome", NOT_OK)
def test_the_mark_in_place_of_latencies_follows_from_the_cause(outcome: Outcome) -> None:
    rows = RequestRows(START, True)
    record = failed(0)
    record.outcome = outcome
    rows.add(record)
    row = np.frombuffer(bytes(rows), dtype=[*ROW_COLUMNS])[0]
    assert row["ttft"] == row["e2el"] == MARKS[outcome.cause]
