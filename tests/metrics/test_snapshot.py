"""Snapshots of participants merge in any order and grouping, without loss."""

import functools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from loadgen.core.outcome import Outcome
from loadgen.metrics.snapshot import COUNTERS, DISTRIBUTIONS, Snapshot
from tests.helpers.run_facts import MS, START, failed, in_order, measured, steady, unsent


def a_run(seed, count=40):
    """Records of a run, in the order in which they ended."""
    draw = random.Random(seed)
    records = []
    for index in range(count):
        match draw.randrange(6):
            case 0:
                records.append(
                    failed(
                        index,
                        draw.choice([Outcome.STATUS, Outcome.TRUNCATED]),
                        detail=f"{index}",
                        due=index,
                    )
                )
            case 1:
                records.append(unsent(index, due=index))
            case _:
                told = draw.choice(
                    [None, {"prompt_tokens": 11, "completion_tokens": draw.randrange(1, 30)}]
                )
                ttft, gap, n = draw.uniform(1, 500), draw.uniform(0, 20), draw.randrange(1, 12)
                records.append(steady(index, due=index, ttft=ttft, gap=gap, n=n, counts=told))
    draw.shuffle(records)
    return records


def same(one: Snapshot, other: Snapshot):
    """Fail where two snapshots differ, but for the order of their requests."""
    one, other = in_order(one), in_order(other)
    for name in Snapshot.__struct_fields__:
        assert getattr(one, name) == getattr(other, name), name


def parts_of(records, n, **options):
    """The same run measured in n stripes."""
    return [measured([r for r in records if r.index % n == i], **options) for i in range(n)]


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("detailed", [False, True])
def test_stripes_merge_into_the_whole(n, detailed):
    records = a_run(seed=n)
    parts = parts_of(records, n, detailed=detailed, limits={"ttft": 100 * MS})
    merged = functools.reduce(Snapshot.merge, parts, measured([], detailed=detailed))
    same(merged, measured(records, detailed=detailed, limits={"ttft": 100 * MS}))
    assert (merged.scheduled, merged.ended, len(merged.index)) == (40, 40, 40)


@pytest.mark.slow
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_parts_may_merge_in_any_order(seed, draw):
    parts = parts_of(a_run(seed), 7, detailed=True)
    expected = functools.reduce(Snapshot.merge, parts)
    draw.shuffle(parts)
    same(functools.reduce(Snapshot.merge, parts), expected)


@pytest.mark.integration
@given(st.integers(0, 1000))
def test_parts_may_merge_in_any_grouping(seed):
    a, b, c = parts_of(a_run(seed), 3, detailed=True)
    same(a.merge(b).merge(c), a.merge(b.merge(c)))


def test_merging_changes_neither_part():
    one, other = parts_of(a_run(seed=1), 2, detailed=True)
    copy = parts_of(a_run(seed=1), 2, detailed=True)
    one.merge(other)
    same(one, copy[0])
    same(other, copy[1])


def test_a_merged_snapshot_has_the_requests_of_both_parts():
    merged = measured([steady(2, due=2), steady(0, due=0)]).merge(measured([steady(1, due=1)]))
    assert merged.index.tolist() == [2, 0, 1]
    assert merged.sent.tolist() == [2 * MS, 0, MS]


def test_details_follow_their_requests():
    one, other = (
        measured([steady(1, ttft=10)], detailed=True),
        measured([steady(0, ttft=30)], detailed=True),
    )
    assert one.merge(other).details.ttfts == [pytest.approx(0.01), pytest.approx(0.03)]


def test_details_that_a_part_did_not_keep_are_not_made_up():
    assert measured([steady(0)], detailed=True).merge(measured([steady(1)])).details is None


def test_merged_percentiles_are_of_all_values_not_a_mean():
    slow, fast = (
        measured([steady(0, ttft=1000)]),
        measured([steady(i, ttft=10) for i in range(1, 100)]),
    )
    assert slow.merge(fast).histograms["ttft_sent"].percentile(50) == pytest.approx(
        10 * MS, rel=1e-3
    )


def test_at_most_three_examples_of_a_class_remain_the_first_of_the_schedule():
    one, other = (
        measured([failed(i, Outcome.EMPTY) for i in range(first, 12, 2)]) for first in (0, 1)
    )
    assert [e["index"] for e in one.merge(other).examples["empty"]] == [0, 1, 2]


def test_partial_snapshot_makes_the_merged_one_partial():
    whole, cut = measured([steady(0)]), measured([steady(1)], partial="interrupted")
    assert whole.merge(cut).partial == cut.merge(whole).partial == "interrupted"
    assert whole.merge(whole).partial is None


def test_parts_of_different_runs_do_not_merge():
    later = structs.replace(measured([]), start_ns=START + 1)
    with pytest.raises(ValueError, match="different runs"):
        measured([]).merge(later)


def test_a_snapshot_names_every_counter_and_histogram():
    empty = measured([])
    assert set(empty.counters) == set(COUNTERS)
    assert set(empty.histograms) == set(DISTRIBUTIONS)


def test_ended_counts_every_outcome_and_ok_one():
    snapshot = measured([steady(0), steady(1), failed(2), unsent(3)], scheduled=9)
    assert (snapshot.scheduled, snapshot.ended, snapshot.ok) == (9, 4, 2)
