"""What few requests have: failures by their phase, silences, and which requests have any."""

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.incidents import phase
from tests.helpers.run_facts import answered, failed, measured, planned, read, unsent


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (Record(0), "scheduled"),
        (unsent(), "connecting"),
        (failed(0, Outcome.REFUSED), "waiting"),
        (read(planned(), b"HTTP/1.1 2"), "head"),
        (failed(0, Outcome.EMPTY), "first token"),
        (failed(0, Outcome.TRUNCATED), "streaming"),
    ],
)
def test_the_phase_says_how_far_a_request_got(record, expected):
    assert phase(record) == expected


# -- silences


def test_a_minute_without_a_token_in_a_stream_is_told_with_the_request() -> None:
    within = answered(7, tokens=[1000, 2000, 63_000, 63_100])
    to_the_end = answered(3, tokens=[1000, 2000], closed=62_000)
    snapshot = measured([within, to_the_end, answered(4, tokens=[1000, 60_900, 120_000])])
    assert snapshot.counters["silent_streams"] == 2
    assert list(snapshot.silences) == [
        {"index": 3, "since_s": 2.0, "for_s": 60.0},
        {"index": 7, "since_s": 2.0, "for_s": 61.0},
    ]


def test_a_minute_until_the_first_token_is_no_silence_in_a_stream() -> None:
    assert measured([answered(tokens=[90_000, 90_100])]).counters["silent_streams"] == 0


# -- which requests have incidents


def altered(**fields: object) -> Record:
    """A usual record, but for these fields."""
    record = answered()
    for name, value in fields.items():
        setattr(record, name, value)
    return record


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (failed(0, Outcome.REFUSED), "examples"),
        (altered(attempts=2), "retries"),
        (altered(unread={"field": (1, "x")}), "unread"),
        (answered(tokens=[1000, 2000], closed=62_000), "silences"),
    ],
    ids=["failed", "sent again", "unread", "silent"],
)
def test_each_incident_is_counted_by_its_own_rule_alone(record: Record, name: str) -> None:
    snapshot = measured([record])
    names = ("examples", "retries", "unread", "silences")
    assert [other for other in names if getattr(snapshot, other)] == [name]


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (failed(0), "broken_off"),
        (altered(outcome=Outcome.CANCELLED, ready=0, sent=0), "never_due"),
    ],
    ids=["broken off", "never due"],
)
def test_a_request_that_ended_otherwise_is_counted(record: Record, name: str) -> None:
    counters = measured([record]).counters
    names = ("broken_off", "never_due")
    assert {other: counters[other] for other in names if counters[other]} == {name: 1}
