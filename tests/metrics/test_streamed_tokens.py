"""The sample of answers whose text is tokenized, and its effect on TPOT."""

import asyncio
import weakref
from itertools import pairwise
from types import SimpleNamespace

import pytest
from msgspec import structs

from loadgen.client.load_loop import Load
from loadgen.config.settings import RunSettings
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import SendHook
from loadgen.core.record import Record
from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.metrics.recorder import Recorder
from loadgen.metrics.snapshot import SampledAnswer
from loadgen.metrics.streamed_tokens import (
    MAX_ANSWERS,
    Comparison,
    Sample,
    differ,
    sampled,
    with_sampled_tpot,
)
from loadgen.testing.replies import STREAM, delta, usage
from loadgen.util.clock import now_ns
from loadgen.workload.due_times import Stripe
from tests.helpers.run_facts import MS, answered, failed, measured, per_event
from tests.helpers.snapshot_ms import only

ANSWERED = (
    STREAM
    + chunk(delta(content="x"))
    + chunk(delta("stop") + usage(completion_tokens=100))
    + LAST_CHUNK
)


def kept(sample: Sample, count: int, of: int = 1, number: int = 0) -> list[int]:
    """The numbers of the answers that a worker's sample keeps where all that are sent end at
    once.
    """
    for index in range(number, count, of):
        record = answered(index, tokens=[20, 30], counts={"completion_tokens": 20})
        record.keeps_text = sample.take(index)
        sample.add(record)
    return [record.index for record in sample.records]


@pytest.mark.parametrize("count", [1, 199, 200, 201, 1000, 5000])
def test_a_sample_is_bounded_and_spread_over_the_run(count):
    indices = kept(Sample(), count)
    assert min(count, MAX_ANSWERS // 2) <= len(indices) <= MAX_ANSWERS
    gaps = {b - a for a, b in pairwise(indices)}
    assert len(gaps) <= 1
    assert count - indices[-1] <= max(gaps, default=1)


async def test_a_sample_is_bounded_where_a_burst_is_sent_before_the_first_answer():
    class Burst:
        """Takes all requests, and then answers all of them."""

        hook, sent = SendHook(), []

        def send(self, record, body):
            self.sent.append(record)
            if len(self.sent) == count:
                asyncio.get_running_loop().call_soon(self.answer)

        def answer(self):
            for record in self.sent:
                response = Response()
                response.begin(record)
                response.feed(ANSWERED, now_ns())
                self.on_end(record)

    count = 5 * MAX_ANSWERS
    stripe = Stripe(range(count), [0] * count)
    requests = SimpleNamespace(
        record=lambda index, due_ns: Record(index, 2, 1, due_ns),
        body=lambda index: b"{}",
        structured=False,
    )
    recorder = Recorder(now_ns(), count)
    load = Load(
        RunSettings(),
        Burst(),
        requests,
        recorder,
        stripe,
        count_tokens=lambda texts: [1] * len(texts),
    )
    await load.run()
    assert recorder.ended == count
    assert len(load._sample.records) <= MAX_ANSWERS


def test_the_samples_of_workers_are_no_more_than_one():
    samples = [kept(Sample(4), 4000, of=4, number=number) for number in range(4)]
    assert sum(map(len, samples)) <= MAX_ANSWERS
    assert all(samples)


def test_answers_without_a_count_and_calls_of_tools_are_in_no_sample():
    sample = Sample()
    for record in (answered(0), answered(1, tools=[40], counts={"completion_tokens": 9})):
        record.keeps_text = sample.take(record.index)
        sample.add(record)
    assert sample.records == []


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
    def in_doubt(record):
        sample = Sample()
        record.keeps_text = sample.take(record.index)
        sample.add(record)
        return sample.is_in_doubt

    assert not in_doubt(answered(tokens=[20, 30], counts={"completion_tokens": 3}))
    assert in_doubt(answered(tokens=[20, 30], counts={"completion_tokens": 50}))
    hidden = {"completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 47}}
    assert not in_doubt(answered(tokens=[20, 30], counts=hidden))
    assert not in_doubt(per_event((20, 40), (30, 50)))


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


@pytest.mark.usefixtures("no_collection")
def test_a_sample_is_freed_with_its_last_name():
    sample = Sample()
    kept(sample, MAX_ANSWERS + 1)
    last = weakref.ref(sample)
    del sample
    assert last() is None
