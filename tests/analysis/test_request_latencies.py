"""Latencies and gaps of one request, from its record, with both ends of what they may truly be."""

import pytest

from loadgen.analysis.request_latencies import STAMP_ERROR_MS, gaps, latency
from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from tests.helpers.run_facts import MS, answered

FROM_SENT = RunSettings(latency_from="sent")


def uncertain() -> Record:
    """Tokens at 20, 30 and 40 ms, of which the first may have come 2 ms and the last 3 ms
    before; sent within 1 ms.
    """
    record = answered()
    first, _, last = record.stamps
    record.written = record.sent + MS
    record.restore([], earliest=[(0, first - 2 * MS), (2, last - 3 * MS)])
    return record


def test_gap_before_an_event_of_several_tokens_is_split():
    record = answered()
    record.restore([record.last_token + 30_000_000], [3])
    found = gaps(record, "itl")
    assert (found.ms.tolist(), found.repeats.tolist()) == ([10, 10, 10], [1, 1, 3])
    assert gaps(record, "icl").ms.tolist() == [10, 10, 30]


@pytest.mark.parametrize(
    ("metric", "value", "least", "greatest"),
    [("ttft", 20, 17, 20), ("ttfo", 20, 17, 20), ("e2el", 40, 36, 40), ("tpot", 10, 8.5, 11)],
)
def test_latency_has_both_ends_of_what_it_may_be(metric, value, least, greatest):
    found = latency(uncertain(), metric, FROM_SENT)
    assert found.ms == value
    assert found.least_ms == pytest.approx(least - STAMP_ERROR_MS)
    assert found.greatest_ms == pytest.approx(greatest + STAMP_ERROR_MS)


def test_latency_from_due_does_not_depend_on_the_send():
    found = latency(uncertain(), "ttft", RunSettings(latency_from="due"))
    assert found.least_ms == pytest.approx(18 - STAMP_ERROR_MS)


def test_gaps_have_both_ends_of_what_they_may_be():
    found = gaps(uncertain(), "icl")
    assert found.ms.tolist() == [10, 10]
    assert found.least_ms == pytest.approx([10 - STAMP_ERROR_MS, 7 - STAMP_ERROR_MS])
    assert found.greatest_ms == pytest.approx([12 + STAMP_ERROR_MS, 10 + STAMP_ERROR_MS])
