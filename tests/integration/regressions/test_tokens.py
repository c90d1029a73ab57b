"""Tokens: which events carry one, and results of streams without any."""

import pytest

from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from tests.helpers.response_bytes import DONE, delta, event, usage
from tests.helpers.run_facts import (
    CHUNKED,
    LAST_CHUNK,
    MS,
    answered,
    at,
    chunk,
    measured,
    planned,
    read,
    result,
)


def stream(*events, index=0):
    """A record sent at 0 of (ms, bytes) events that came to a clean end with the last."""
    record, response = planned(index), Response()
    response.begin(record)
    response.feed(CHUNKED, at(1))
    for ms, data in events:
        response.feed(chunk(data), at(ms))
    response.feed(LAST_CHUNK, at(events[-1][0]))
    return record


def ms_of(record, metric):
    return measured([record]).histograms[metric].mean / MS


def test_usage_counts_the_tokens_and_events_do_not():
    """vllm#27485, sglang#12064: one event was taken for one token.

    With speculative decoding an event brings several. Users saw output throughput too low and TPOT
    too high by the number accepted per step.
    """
    record = answered(tokens=[100, 200, 300], counts={"completion_tokens": 10})
    found = result([record])
    assert found["total_output_tokens"] == 10
    assert found["mean_tpot_ms"] == pytest.approx(200 / 9)
    assert found["loadgen"]["tokens"]["token_events"] == 3
    assert found["loadgen"]["tokens"]["unseen_tokens"] == 7


def test_a_gap_before_an_event_of_several_tokens_is_several_gaps_between_tokens():
    """vllm#27485: the gap before an event of four tokens was one ITL of four tokens' length."""

    def told(text, tokens, finish=None):
        counts = {"completion_tokens": tokens, "prompt_tokens": 1}
        return event(
            choices=[{"index": 0, "delta": {"content": text}, "finish_reason": finish}],
            usage=counts,
        )

    record = stream(
        (100, told("a", 1)), (140, told("b c d e", 5)), (180, told("f g h i", 9, "stop"))
    )
    assert ms_of(record, "icl") == pytest.approx(40)
    assert ms_of(record, "itl") == pytest.approx(10)


def test_the_chunk_that_names_the_role_is_no_token():
    """vllm#15106: the first chunk, which has a role and no text, ended TTFT.

    With chunked prefill it leaves after the first part of the prompt: users saw a TTFT of 0.9 s and
    then a first inter-token latency of 1.3 s, where the first token came after 2.2 s.
    """
    record = stream(
        (900, delta(role="assistant", content="")),
        (2200, delta(content="a")),
        (2210, delta("stop")),
    )
    assert ms_of(record, "ttft_sent") == pytest.approx(2200, rel=1e-3)
    assert record.stamps == [at(2200)]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_deltas_count_as_tokens(field):
    """guidellm#737, gpustack#6205: deltas in `reasoning` were no tokens.

    Of a reasoning model only the answer at the end was timed, against all the tokens that usage
    counts: users saw a TPOT of 0.03 ms and a peak of 34,751,436 tok/s.
    """
    thoughts = [(100 + 10 * n, delta(**{field: "x"})) for n in range(100)]
    answer = [
        (1100, delta(content="a")),
        (1110, delta(content="b") + delta("stop") + usage(completion_tokens=102)),
    ]
    record = stream(*thoughts, *answer)
    assert ms_of(record, "ttft_sent") == pytest.approx(100, rel=1e-3)
    assert ms_of(record, "ttfo_sent") == pytest.approx(1100, rel=1e-3)
    found = result([record])
    assert found["mean_tpot_ms"] == pytest.approx(10)
    assert found["max_output_tokens_per_s"] <= 102


def test_an_error_inside_the_stream_is_no_success():
    """vllm#57519: a stream of a few tokens, an error object and [DONE] was a completed request.

    The more an engine failed, the better users saw it do: short failures joined the latencies and
    their tokens the throughput.
    """
    failure = (
        event(error={"message": "out of memory", "type": "InternalServerError", "code": 500}) + DONE
    )
    record = read(
        planned(1), CHUNKED + chunk(delta(content="a") + delta(content="b") + failure) + LAST_CHUNK
    )
    assert record.outcome is Outcome.STREAM_ERROR
    found = result([answered(0, tokens=[20, 30, 40]), record])
    assert (found["completed"], found["failed"], found["total_output_tokens"]) == (1, 1, 3)
    assert found["loadgen"]["latency_ms"]["e2el_sent"]["count"] == 1


def test_a_stream_without_a_token_has_no_ttft():
    """vllm#54708: a stream with no choices in it was a completed request with a TTFT of 0 ms.

    Users saw the median TTFT fall towards 0 as more of the responses were empty.
    """
    nothing = event(id="x", choices=[]) + usage(prompt_tokens=5, completion_tokens=0) + DONE
    record = read(planned(0), CHUNKED + chunk(nothing) + LAST_CHUNK)
    assert record.outcome is Outcome.EMPTY
    found = result([record])
    assert (found["completed"], found["failed"]) == (0, 1)
    assert (found["mean_ttft_ms"], found["median_ttft_ms"], found["p99_ttft_ms"]) == (
        None,
        None,
        None,
    )
