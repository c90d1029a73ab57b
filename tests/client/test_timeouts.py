"""Timeouts: which limit a request passes first, and when."""

import pytest

from loadgen.client.timeouts import NEVER_NS, Timeouts
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.failures import SILENCE_NS
from tests.helpers.run_facts import MS, S, answered, at, planned


def waiting(first_byte_ms: float | None = None) -> Record:
    """A request that was sent at 0 and has no token."""
    record = planned()
    if first_byte_ms is not None:
        record.first_byte = at(first_byte_ms)
    return record


def limits(**seconds: float) -> Timeouts:
    return Timeouts(connect=S, **{name: int(value * S) for name, value in seconds.items()})


STREAM = answered(tokens=[200, 500])


@pytest.mark.parametrize(
    ("record", "given", "left_ms", "outcome"),
    [
        (waiting(), limits(whole=2), 1000, Outcome.TIMEOUT),
        (waiting(), limits(first_token=1.5), 500, Outcome.TIMEOUT_FIRST_TOKEN),
        (waiting(), limits(stall=1.5, whole=9), 8000, Outcome.TIMEOUT),
        (waiting(100), limits(stall=1.5), 600, Outcome.STALLED),
        (waiting(100), limits(stall=1.5, first_token=9), 8000, Outcome.TIMEOUT_FIRST_TOKEN),
        (STREAM, limits(stall=1.5, first_token=0.1), 1000, Outcome.STALLED),
        (STREAM, limits(stall=1.5, whole=1.2), 200, Outcome.TIMEOUT),
        (STREAM, limits(stall=0.3), -200, Outcome.STALLED),
    ],
)
def test_the_limit_that_is_passed_first_ends_a_request(
    record: Record, given: Timeouts, left_ms: float, outcome: Outcome
) -> None:
    assert given.left(record, at(1000)) == (left_ms * MS, outcome)


def test_without_a_limit_there_is_no_end() -> None:
    assert limits().left(STREAM, at(1000))[0] == NEVER_NS


def test_streams_are_looked_at_in_time_for_the_smallest_limit() -> None:
    assert limits(stall=0.2, whole=9).smallest == 0.2 * S
    assert limits().smallest == SILENCE_NS
