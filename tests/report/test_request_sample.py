"""The sample of single requests in a result: all of a small run, the slowest and the failed ones
of a large one.
"""

import numpy as np
import pytest
from msgspec import structs

from loadgen.core.outcome import Outcome
from loadgen.core.request_rows import CANCELLED, FAILED
from loadgen.metrics.snapshot import ROW_COLUMNS, Snapshot
from loadgen.report.result.fields import from_json_values, to_json_values
from loadgen.report.result.timeline import A_STRETCH, STRETCHES, RequestSample
from tests.helpers.run_facts import MS, S, failed, measured, rows_of, steady, unsent

MOST = STRETCHES * A_STRETCH


def large(count: int = 50_000) -> Snapshot:
    """The snapshot of a run of equal requests, one each 10 ms, in the reverse order."""
    one = measured([steady(n=3)])
    sent = np.arange(count)[::-1] * 10 * MS
    rows = rows_of(
        index=np.arange(count)[::-1],
        sent=sent,
        closed=sent + S,
        ttft=np.full(count, 20 * MS),
        e2el=np.full(count, 900 * MS),
    )
    return structs.replace(one, rows=rows)


def test_small_run_keeps_all_requests_in_order_of_sending() -> None:
    records = [steady(1, due=200, ttft=30, gap=5, n=3), steady(0, due=100, ttft=20, gap=10, n=3)]
    sample = RequestSample.of(measured(records))
    assert sample == RequestSample(
        requests=2,
        sent_s=[0.1, 0.2],
        ttft_ms=[20.0, 30.0],
        e2el_ms=[40.0, 40.0],
        tpot_ms=[10.0, 5.0],
    )


def test_latencies_count_from_sent_where_that_is_asked() -> None:
    record = steady(due=100, ttft=20, gap=10, n=3)
    record.sent += 5 * MS
    sample = RequestSample.of(measured([record], from_due=False))
    assert sample is not None
    assert (sample.sent_s, sample.ttft_ms, sample.e2el_ms) == ([0.105], [15.0], [35.0])


def test_failed_request_has_the_time_until_its_end_and_no_ttft() -> None:
    sample = RequestSample.of(
        measured([failed(0), unsent(1, due=50), failed(2, Outcome.CANCELLED)])
    )
    assert sample is not None
    assert sample.requests == 2
    assert sample.ttft_ms == sample.tpot_ms == [None, None]
    assert sample.sent_s == [0.0, 0.055]  # the second was never sent, and ended then
    assert sample.e2el_ms[1] == 0.0
    assert sample.e2el_ms[0] > 0


@pytest.mark.parametrize("records", [[], [failed(0, Outcome.CANCELLED)]])
def test_there_is_no_sample_where_no_request_ended(records: list[object]) -> None:
    assert RequestSample.of(measured(records)) is None  # type: ignore[arg-type]


def test_large_run_keeps_its_extremes_and_failures_and_stays_small() -> None:
    snapshot = large()
    snapshot.ttft[[7, 30_001]] = 5 * S
    snapshot.e2el[40_003] = 9 * S
    snapshot.ttft[12_345] = snapshot.e2el[12_345] = FAILED
    snapshot.ttft[::7] = np.where(snapshot.ttft[::7] == 20 * MS, CANCELLED, snapshot.ttft[::7])
    sample = RequestSample.of(snapshot)
    assert sample is not None
    assert sample.requests == (snapshot.ttft != CANCELLED).sum()
    assert 2 * STRETCHES <= len(sample.sent_s) <= MOST
    assert sample.sent_s == sorted(sample.sent_s)
    assert sample.ttft_ms.count(5000.0) == 2
    assert sample.ttft_ms.count(None) == 1
    assert max(sample.e2el_ms) == 9000.0


def test_sample_is_complete_if_no_request_failed_or_is_left_out() -> None:
    assert RequestSample.of(measured([steady(0), steady(1, n=1)])).is_complete  # type: ignore[union-attr]
    assert not RequestSample.of(measured([steady(0), failed(1)])).is_complete  # type: ignore[union-attr]
    assert not RequestSample.of(large()).is_complete  # type: ignore[union-attr]


def test_sample_of_an_earlier_version_is_not_complete() -> None:
    saved = to_json_values(RequestSample.of(measured([steady(0)])))
    del saved["tpot_ms"]
    assert not from_json_values(saved, RequestSample).is_complete


def test_sample_does_not_depend_on_the_order_of_counting() -> None:
    snapshot = large(3 * MOST)
    order = np.random.default_rng(1).permutation(3 * MOST)
    rows = rows_of(**{name: getattr(snapshot, name)[order] for name, _ in ROW_COLUMNS})
    assert RequestSample.of(structs.replace(snapshot, rows=rows)) == RequestSample.of(snapshot)


def test_sample_is_read_again_as_it_was_saved() -> None:
    sample = RequestSample.of(measured([steady(0), failed(1)]))
    assert from_json_values(to_json_values(sample), RequestSample) == sample
