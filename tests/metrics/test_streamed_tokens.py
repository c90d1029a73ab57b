"""Tokens in the text of a sample of answers, and their effect on TPOT."""

import pytest
from msgspec import structs

from loadgen.core.outcome import Outcome
from loadgen.metrics.snapshot import SampledAnswer
from loadgen.metrics.streamed_tokens import (
    Comparison,
    differ,
    is_in_doubt,
    sampled,
    with_sampled_tpot,
)
from tests.helpers.run_facts import MS, answered, failed, measured, per_event
from tests.helpers.snapshot_ms import only


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], False),
        ([(100, 90)], True),
        ([(99, 90)], False),  # 10 % is not more than 10 %
        ([(30, 22)], False),  # 8 tokens are not more than 8
        ([(31, 22)], True),
        ([(10, 0)], True),
        ([(500, 10), (10, 10), (10, 10)], False),
        ([(500, 10), (500, 10), (10, 10)], True),
    ],
)
def test_hidden_tokens_matter_by_their_median(pairs, expected):
    assert differ(pairs) is expected


def test_single_token_events_are_not_in_doubt():
    assert not is_in_doubt([])
    assert not is_in_doubt([answered(tokens=[20, 30], counts={"completion_tokens": 3})])
    assert is_in_doubt([answered(tokens=[20, 30], counts={"completion_tokens": 50})])
    hidden = {"completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 47}}
    assert not is_in_doubt([answered(tokens=[20, 30], counts=hidden)])
    assert not is_in_doubt([per_event((20, 40), (30, 50))])


def test_tpot_is_over_the_streamed_tokens_of_the_sample():
    record = answered(tokens=[1000, 1100, 1200], counts={"completion_tokens": 503})
    snapshot = measured([record])
    assert only(snapshot, "tpot") == pytest.approx(200 / 502, rel=0.01)
    told = with_sampled_tpot(_with(snapshot, sampled(record, 3)))
    assert only(told, "tpot") == pytest.approx(100, rel=0.01)
    assert (told.counters["decode_ns"], told.counters["decode_tokens"]) == (200 * MS, 2)
    assert told.counters["output_tokens"] == 503
    assert only(told, "tpot_n1") == pytest.approx(200 / 502, rel=0.01)


def test_complete_sample_leaves_the_snapshot_unchanged():
    record = answered(tokens=[20, 30], counts={"completion_tokens": 30})
    snapshot = _with(measured([record]), sampled(record, 30))
    assert with_sampled_tpot(snapshot) is snapshot


@pytest.mark.parametrize(
    ("told", "mean_ms"),
    [
        ((503, 503), (100, 100)),
        ((503, 10), (100, 100)),  # by itself the second target would be within what may be unseen
        ((503, 3, 3), (200 / 502, 100, 100)),  # by itself the first target would not
    ],
)
def test_all_targets_have_the_tpot_of_the_whole(told, mean_ms):
    records = [
        answered(i, tokens=[1000, 1100, 1200], counts={"completion_tokens": count})
        for i, count in enumerate(told)
    ]
    parts = [_with(measured([record]), sampled(record, 3)) for record in records]
    whole = _with(measured(records), *(sampled(record, 3) for record in records))
    assert Comparison.of(whole).hides is (len(told) == 2)
    found = with_sampled_tpot(structs.replace(whole, targets=tuple(parts)))
    assert [only(part, "tpot") for part in found.targets] == [
        pytest.approx(ms, rel=0.01) for ms in mean_ms
    ]
    for name in ("decode_ns", "decode_tokens"):
        assert found.counters[name] == sum(part.counters[name] for part in found.targets)


def test_a_comparison_is_of_medians():
    snapshot = _with(measured([]), *(SampledAnswer(n, 2, 1, MS, MS, MS) for n in (10, 20, 90)))
    assert Comparison.of(snapshot) == Comparison(3, 20, 2, 18, True)
    assert Comparison.of(measured([failed(0, Outcome.TRUNCATED)])) is None


def _with(snapshot, *sample):
    return structs.replace(snapshot, sample=sample)
