"""Statistics of a latency, and how far the client may have moved them."""

import math

import pytest

from loadgen.core.sketch import Sketch
from loadgen.metrics.recorder import Recorder
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


def test_sketch_has_the_values_that_are_exact_and_those_that_are_not() -> None:
    recorder = Recorder(0, 20)
    for index in range(20):
        record = answered(index, tokens=[20 + index % 7, 60 + index])
        if index % 2:
            record.restore([], earliest=[(0, record.first_token - 4 * MS)])
        recorder.add(record)
    for name, histogram in recorder.snapshot().histograms.items():
        sketch = Sketch.of(histogram)
        assert recorder.sketch(name) == sketch, name
        assert list(recorder.sketch(name).counts) == list(sketch.counts), name


def test_exact_stamps_leave_the_floor_and_half_a_bucket() -> None:
    assert client_error_ms(run_of(0), "ttft_sent", "mean") == pytest.approx(FLOOR)
    assert client_error_ms(run_of(0), "ttft_sent", "p99") == pytest.approx(
        FLOOR + RESOLUTION * 20, rel=1e-3
    )


def test_error_reaches_both_ends_of_the_intervals() -> None:
    snapshot = run_of(4)
    assert client_error_ms(snapshot, "ttft_sent", "mean") == pytest.approx(4 + FLOOR)
    assert client_error_ms(snapshot, "tpot", "mean") == pytest.approx(2 + FLOOR)
    assert client_error_ms(snapshot, "icl", "max") == pytest.approx(4 + FLOOR, rel=1e-2)


def test_error_does_not_reach_below_a_latency_of_0() -> None:
    assert client_error_ms(run_of(30), "ttft_sent", "mean") == pytest.approx(20 + FLOOR)


@pytest.mark.parametrize("metric", ["ttft", "e2el"])
def test_lag_is_in_the_error_of_latencies_from_due(metric: str) -> None:
    """The server would have answered as much sooner, had the client sent on time."""
    records = [answered(index, sent=30, tokens=[50, 90]) for index in range(100)]
    snapshot = measured(records)
    for statistic in ("mean", "p99"):
        late = client_error_ms(snapshot, f"{metric}_due", statistic)
        assert late == pytest.approx(30 + FLOOR, rel=2e-3)
        on_time = client_error_ms(snapshot, f"{metric}_sent", statistic)
        assert on_time == pytest.approx(FLOOR, abs=0.05)
    assert client_error_ms(snapshot, "tpot", "mean") == pytest.approx(FLOOR)
    assert client_error_ms(snapshot, "icl", "mean") == pytest.approx(FLOOR)


def test_the_wait_for_a_slot_is_no_error() -> None:
    records = [answered(index, ready=30, sent=30, tokens=[50, 90]) for index in range(100)]
    assert client_error_ms(measured(records), "ttft_due", "mean") == pytest.approx(FLOOR)


def read_at_once() -> Snapshot:
    """10 answers of events at 20, 60, 60, 60 and 100 ms, of which those at 60 ms came at 20 ms
    at the earliest.
    """
    records = []
    for index in range(10):
        record = answered(index, tokens=[20, 60, 60, 60, 100])
        at_20_ms = record.first_token
        record.restore([], earliest=[(event, at_20_ms) for event in (1, 2, 3)])
        records.append(record)
    return measured(records)


@pytest.mark.parametrize("gap", ["itl", "icl"])
def test_mean_of_gaps_cannot_move_where_first_and_last_tokens_are_exact(gap: str) -> None:
    snapshot = read_at_once()
    assert statistic_ms(snapshot.histograms[gap], "mean") == 20
    # 40, 40, 40 and 80 ms, in a stream of 80 ms
    assert statistic_ms(snapshot.upper[gap], "mean") == 50
    assert client_error_ms(snapshot, gap, "mean") == pytest.approx(FLOOR)
    assert client_error_ms(snapshot, gap, "p99") == pytest.approx(
        40 + FLOOR + RESOLUTION * 40, rel=1e-2
    )


def test_mean_of_gaps_moves_by_what_first_tokens_can_have_been_early() -> None:
    record = answered(tokens=[20, 30, 40])
    record.restore([], earliest=[(0, record.first_token - 4 * MS)])
    assert client_error_ms(measured([record]), "icl", "mean") == pytest.approx(4 / 2 + FLOOR)


def test_mean_of_gaps_is_bounded_gap_by_gap_where_they_are_not_the_whole_stream() -> None:
    record = answered(tokens=[20, 30, 40])
    record.last_token += 60 * MS  # an event that bears no token
    record.restore([record.last_token], [0], earliest=[(1, record.first_token)])
    snapshot = measured([record])  # 10 and 10 ms, each of them 0 to 20 ms
    assert statistic_ms(snapshot.histograms["itl"], "mean") == 10
    assert client_error_ms(snapshot, "itl", "mean") == pytest.approx(15 - 10 + FLOOR)


def test_statistic_among_failed_requests_has_no_error() -> None:
    snapshot = measured([answered(), failed(1)])
    assert statistic_ms(snapshot.histograms["ttft_sent"], "p99", 1) == math.inf
    assert client_error_ms(snapshot, "ttft_sent", "p99", 1) is None


def test_nothing_measured_has_no_error() -> None:
    assert client_error_ms(measured([]), "ttft_sent", "p99") is None
