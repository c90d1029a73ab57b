"""Answers whose text is tokenized after the run: those that the server does not count, and a
sample of those that it does.
"""

import asyncio
from itertools import pairwise
from types import SimpleNamespace

import pytest

from loadgen.client.load_loop import Load
from loadgen.config.settings import RunSettings
from loadgen.core.http1 import Response
from loadgen.core.read_loop import SendHook
from loadgen.engines.sim.http1 import LAST_CHUNK, chunk
from loadgen.errors import BadInput
from loadgen.features.answer_tokens import MAX_ANSWERS, AnswerTokens
from loadgen.metrics.recorder import Recorder
from loadgen.testing.replies import STREAM, delta, usage
from loadgen.util.clock import now_ns
from loadgen.workload import request_store
from loadgen.workload.due_times import Stripe
from loadgen.workload.prompt import Prompt
from tests.helpers.run_facts import answered

ANSWERED = (
    STREAM
    + chunk(delta(content="x"))
    + chunk(delta("stop") + usage(completion_tokens=100))
    + LAST_CHUNK
)


class Tokenizer:
    """Finds so many tokens in each text."""

    def __init__(self, tokens):
        self.tokens = tokens

    def count(self, texts):
        return [self.tokens] * len(texts)


async def test_a_sample_is_bounded_where_a_burst_is_sent_before_the_first_answer(tmp_path):
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
    prompt = Prompt("Hello?", 2, 1, "test")
    request_store.write(tmp_path, [prompt], lambda prompt: b"{}", dict, 1)
    recorder = Recorder(now_ns(), count)
    tokens = AnswerTokens(lambda: Tokenizer(1), recorder)
    with request_store.Requests(tmp_path) as requests:
        await Load(RunSettings(), Burst(), requests, recorder, stripe, features=[tokens]).run()
    assert recorder.ended == count
    assert len(tokens._sample.records) <= MAX_ANSWERS


def kept(tokens_of_text=0, told=(), *, records=(), workers=1):
    """A recorder, the feature and the hooks, once it has got answers with these counts and these
    records.
    """
    recorder = Recorder(0, len(told))

    def load():
        if tokens_of_text is None:
            raise BadInput("--tokenizer", "is none", "give one")
        return Tokenizer(tokens_of_text)

    tokens, sender = AnswerTokens(load, recorder, workers), SimpleNamespace()
    tokens.register(sender)
    for record in (
        *(answered(i, tokens=[20, 30], counts=counts) for i, counts in enumerate(told)),
        *records,
    ):
        record.keeps_text = sender.samples(record.index)
        if not sender.defers(record):
            recorder.add(record)
    return recorder, tokens, sender


def sampled(count, of=1, number=0):
    """The numbers of the answers in the sample of a worker where all that are sent end at once."""
    counts = {"completion_tokens": 20}
    records = (answered(i, tokens=[20, 30], counts=counts) for i in range(number, count, of))
    _, tokens, _ = kept(records=records, workers=of)
    return [record.index for record in tokens._sample.records]


@pytest.mark.parametrize("count", [1, 199, 200, 201, 1000, 5000])
def test_a_sample_is_bounded_and_spread_over_the_run(count):
    indices = sampled(count)
    assert min(count, MAX_ANSWERS // 2) <= len(indices) <= MAX_ANSWERS
    gaps = {b - a for a, b in pairwise(indices)}
    assert len(gaps) <= 1
    assert count - indices[-1] <= max(gaps, default=1)


def test_the_samples_of_workers_are_no_more_than_one():
    samples = [sampled(4000, of=4, number=number) for number in range(4)]
    assert sum(map(len, samples)) <= MAX_ANSWERS
    assert all(samples)


def test_answers_without_a_count_and_calls_of_tools_are_in_no_sample():
    tool = answered(1, tools=[40], counts={"completion_tokens": 9})
    _, tokens, _ = kept(records=(answered(0), tool))
    assert tokens._sample.records == []


async def test_answers_that_the_server_does_not_count_are_recorded_with_what_was_counted():
    recorder, tokens, _ = kept(7, told=({}, {}))
    assert recorder.ended == 0
    assert await tokens.finish() == {"tokenized": [(0, 7), (1, 7)], "sampled": []}
    assert (recorder.ended, recorder.count("output_tokens")) == (2, 14)


async def test_answers_are_recorded_where_nothing_can_count_them():
    recorder, tokens, _ = kept(None, told=({}, {}))
    assert await tokens.finish() == {"tokenized": [], "sampled": []}
    assert recorder.ended == 2


async def test_texts_are_kept_until_the_server_has_counted():
    for told, keeps in ((({},), True), (({}, {"completion_tokens": 2}), False)):
        _, _, sender = kept(told=told)
        assert sender.keeps_text is keeps


async def test_the_sample_is_tokenized_where_the_server_counts_more_than_events_show():
    for counted, sampled in ((2, []), (100, [(0, 3)])):
        recorder, tokens, _ = kept(3, told=({"completion_tokens": counted},))
        assert await tokens.finish() == {"tokenized": [], "sampled": sampled}
        assert len(recorder.snapshot().sample) == len(sampled)
