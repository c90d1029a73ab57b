"""The timeline of a run is coarse but complete, bounded in memory, and merges without loss."""

import functools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.histogram import DAY_NS, Histogram, coarse_lowest, coarse_row
from loadgen.core.outcome import Outcome
from loadgen.core.sketch import COLUMNS, MAX_ERROR, ROWS
from loadgen.report.result.timeline import Timeline
from tests.helpers.run_facts import MS, S, answered, failed, measured, steady, unsent


def dense(cells):
    """The counts of a timeline, shape (columns, rows)."""
    counts = np.zeros((COLUMNS, ROWS), dtype=np.int64)
    for cell, count in cells.items():
        counts.flat[cell] = count
    return counts


# -- rows


@given(st.integers(0, DAY_NS))
def test_row_begins_at_or_below_its_values(value):
    row = coarse_row(value)
    assert coarse_lowest(row) <= value < coarse_lowest(row + 1)
    assert row < ROWS


def test_row_middle_is_within_max_error():
    for row in range(coarse_row(2048), ROWS):
        assert (coarse_lowest(row + 1) - coarse_lowest(row)) / coarse_lowest(row) <= 2 * MAX_ERROR


def test_rows_end_where_buckets_of_a_histogram_do():
    histogram = Histogram()
    for value in (3, 2_047, 2_048, 1_000_000, DAY_NS):
        histogram.record(value)
    for lowest, highest, _ in histogram:
        assert coarse_row(lowest) == coarse_row(highest)


# -- columns


def test_ttft_is_counted_when_the_token_came():
    found = measured([answered(due=100, sent=103, tokens=[400, 410])]).timeline
    (column, row), *more = np.argwhere(dense(found.ttft)).tolist()
    assert (column, coarse_lowest(row) <= 300 * MS < coarse_lowest(row + 1), more) == (1, True, [])


def test_ttft_counts_from_sent_where_latencies_do():
    found = measured([answered(due=100, sent=300, tokens=[400, 410])], from_due=False).timeline
    ((_, row),) = np.argwhere(dense(found.ttft)).tolist()
    assert row == coarse_row(100 * MS)


def test_gap_is_counted_when_it_ended():
    found = measured([answered(tokens=[240, 260, 520])]).timeline
    assert np.argwhere(dense(found.icl)).tolist() == [
        [1, coarse_row(20 * MS)],
        [2, coarse_row(260 * MS)],
    ]


@pytest.mark.parametrize(
    "record", [failed(0), unsent(0), failed(0, Outcome.TRUNCATED)], ids=lambda r: str(r.outcome)
)
def test_failed_request_is_not_on_the_timeline(record):
    found = measured([record]).timeline
    assert found.ttft == found.icl == {}


def test_columns_double_in_width_beyond_the_last():
    early, late = (
        answered(0, tokens=[20, 30, 300]),
        answered(1, due=64_000, tokens=[64_020, 64_030]),
    )
    found = measured([early, late]).timeline
    assert found.width_ns == 500 * MS
    assert [column for column, _ in np.argwhere(dense(found.ttft))] == [0, 128]
    assert dense(found.icl)[0].sum() == 2


def test_answer_of_many_hours_is_counted_where_it_ends():
    found = measured([answered(tokens=[20, 30, 10 * 3600 * 1000])]).timeline
    assert sum(found.ttft.values()) + sum(found.icl.values()) == 3
    last_s = np.argwhere(dense(found.icl))[-1][0] * found.width_ns / S
    assert last_s <= 36_000 < last_s + found.width_ns / S


def spread(seed, longest_s):
    draw = np.random.default_rng(seed)
    times = draw.uniform(0, longest_s * 1000, 30)
    return [
        steady(index, due=due, ttft=20 + index, gap=3)
        for index, due in enumerate(sorted(times.tolist()))
    ]


@pytest.mark.integration
@pytest.mark.parametrize("longest_s", [1, 100, 40_000])
def test_merged_parts_equal_the_whole(longest_s):
    records = spread(1, longest_s)
    whole = measured(records).timeline
    parts = [measured(records[number::3]).timeline for number in range(3)]
    parts.append(measured([]).timeline)
    assert functools.reduce(lambda a, b: a.merge(b), parts) == whole
    assert functools.reduce(lambda a, b: a.merge(b), reversed(parts)) == whole


@pytest.mark.integration
def test_parts_of_different_length_merge_to_the_whole():
    records = spread(1, 40_000)
    parts = [measured(records[:3]).timeline, measured(records[3:]).timeline]
    assert parts[0].width_ns < parts[1].width_ns
    assert parts[0].merge(parts[1]) == measured(records).timeline


def test_part_of_a_second_merges_with_one_of_hours():
    short, long = measured(spread(2, 1)).timeline, measured(spread(3, 40_000)).timeline
    whole = short.merge(long)
    assert whole.width_ns == long.width_ns
    assert dense(whole.ttft)[0].sum() == 30 + dense(long.ttft)[0].sum()


def test_timeline_taken_earlier_does_not_change():
    from loadgen.metrics.recorder import Recorder
    from tests.helpers.run_facts import START

    recorder = Recorder(START, 2)
    recorder.add(steady(0))
    before = recorder.snapshot().timeline
    recorder.add(steady(1, due=5))
    assert sum(before.ttft.values()) == 1


def test_timeline_pickles_without_loss():
    found = measured(spread(4, 100)).timeline
    assert pickle.loads(pickle.dumps(found)) == found
    assert len(pickle.dumps(found)) < 20_000


# -- percentiles


def test_column_percentiles_are_within_max_error():
    ttfts = np.random.default_rng(5).lognormal(2.5, 0.6, 200)
    found = Timeline.of(
        measured([steady(index, ttft=ttft, gap=3) for index, ttft in enumerate(ttfts.tolist())])
    )
    for p in (50, 99):
        assert found.ttft_ms.percentile(f"p{p}")[0] == pytest.approx(
            np.percentile(ttfts, p), rel=MAX_ERROR
        )


# -- in the result


def test_result_holds_every_request_and_gap_over_time():
    records = [
        answered(0),
        answered(1, due=240, tokens=[260, 270]),
        failed(2, due=20),
        unsent(3, due=700),
    ]
    found = Timeline.of(measured(records))
    assert found.width_s == 0.25
    assert found.sent == [3, 0, 0]
    assert found.ended == [2, 1, 1]
    assert found.failed == [1, 0, 1]
    assert found.in_flight == [1, 1, 0]
    assert found.output_tokens == [3, 2, 0]


def test_result_percentiles_and_heat_map_agree():
    found = Timeline.of(
        measured([answered(tokens=[20, 30, 40]), answered(1, due=500, tokens=[520, 620])])
    )
    icl = found.icl_ms
    assert icl.p50 == [pytest.approx(10, rel=MAX_ERROR), None, pytest.approx(100, rel=MAX_ERROR)]
    assert [sum(column) for column in icl.counts] == [2, 0, 1]
    assert len(icl.edges) == len(icl.counts[0]) + 1
    assert icl.edges[0] <= 10 < icl.edges[1]
    assert icl.edges[-2] <= 100 < icl.edges[-1]


def test_result_reaches_to_a_last_request_that_hangs():
    hung = failed(1, Outcome.TIMEOUT, due=100, sent=100)
    hung.closed += 100 * S
    found = Timeline.of(measured([steady(0), hung]))
    assert found.width_s == 0.5
    assert found.in_flight[:2] == [1, 1]
    assert (sum(found.failed), found.failed[-1]) == (1, 1)


def test_result_has_no_timeline_without_ended_requests():
    assert Timeline.of(measured([])) is None
