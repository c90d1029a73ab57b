"""Statistics of a latency, and how far the client may have moved them."""

import math

import pytest

from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import CLOCK_MS, FLOOR_MS, RESOLUTION, client_error_ms, statistic_ms
from tests.helpers.run_facts import MS, answered, failed, measured

FLOOR = FLOOR_MS + CLOCK_MS


def run_of(earlier_ms: float) -> Snapshot:
    """100 answers with a TTFT of 20 ms, whose first token may have come so much earlier."""
    records = []
    for index in range(100):
        record = answered(index)
        record.restore([], earliest=[(0, record.first_token - round(earlier_ms * MS))])
        records.append(record)
    return measured(records)


def test_exact_stamps_leave_the_floor_and_half_a_bucket() -> None:
    assert client_error_ms(run_of(0), "ttft_sent", "mean") == pytest.approx(FLOOR)
    assert client_error_ms(run_of(0), "ttft_sent", "p99") == pytest.approx(FLOOR + RESOLUTION * 20, rel=1e-3)


def test_error_reaches_both_ends_of_the_intervals() -> None:
    snapshot = run_of(4)
    assert client_error_ms(snapshot, "ttft_sent", "mean") == pytest.approx(4 + FLOOR)
    assert client_error_ms(snapshot, "tpot", "mean") == pytest.approx(2 + FLOOR)
    assert client_error_ms(snapshot, "icl", "max") == pytest.approx(4 + FLOOR, rel=1e-2)


def test_error_does_not_reach_below_a_latency_of_0() -> None:
    assert client_error_ms(run_of(30), "ttft_sent", "mean") == pytest.approx(20 + FLOOR)


def test_statistic_among_failed_requests_has_no_error() -> None:
    snapshot = measured([answered(), failed(1)])
    assert statistic_ms(snapshot.histograms["ttft_sent"], "p99", 1) == math.inf
    assert client_error_ms(snapshot, "ttft_sent", "p99", 1) is None


def test_nothing_measured_has_no_error() -> None:
    assert client_error_ms(measured([]), "ttft_sent", "p99") is None
