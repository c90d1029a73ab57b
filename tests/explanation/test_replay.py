"""What an advice would bring is what the same requests measure under the changed limit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from loadgen.explanation.explainer import explain
from loadgen.explanation.replay import Replay
from loadgen.explanation.request_columns import MS, RequestColumns
from loadgen.explanation.step_costs import fit
from loadgen.explanation.steps import Arrivals, Steps
from loadgen.report.result.explanation import BeforeAfter, NamedCause, PredictedChange
from tests.helpers.planted_records import Answer, records, served

MS_NS = int(1 / MS)
LONG_PROMPTS: dict[str, Any] = {
    "prompt_us": 50,
    "prompts": (16, 3500),
    "answers": (60, 140),
    "rate": 5,
    "count": 100,
}
BIG_BATCHES: dict[str, Any] = {
    "stream_us": 2000,
    "base_ms": 6,
    "prompts": (16, 40),
    "answers": (60, 120),
    "rate": 7,
}


def named(answers: list[Answer], name: str, **how: bool) -> NamedCause:
    explanation = explain(records(answers), None, **how)
    assert explanation is not None
    (cause,) = (cause for cause in explanation.causes if cause.name == name)
    return cause


@pytest.mark.parametrize(
    ("planted", "changed", "cause", "change"),
    [
        ({"max_num_seqs": 3}, {"max_num_seqs": 6}, "queue-slots", "6 slots for 3"),
        (
            {"num_kv_tokens": 1400, "rate": 10},
            {"num_kv_tokens": 2800, "rate": 10},
            "kv",
            "2800 tokens of KV cache for 1400",
        ),
        (
            LONG_PROMPTS,
            LONG_PROMPTS | {"max_num_batched_tokens": 256, "max_num_seqs": 200},
            "prefill-others",
            "256 tokens a step",
        ),
    ],
)
def test_a_change_brings_what_is_predicted(
    planted: dict[str, Any], changed: dict[str, Any], cause: str, change: str
) -> None:
    predicted = named(served(**planted), cause).predicted
    assert predicted is not None
    assert predicted.change == change
    after = RequestColumns.of(records(served(**changed)))
    assert predicted.ttft_p50.then_ms == pytest.approx(np.median(after.ttft_ms), rel=0.1)
    assert predicted.e2el.then_ms == pytest.approx(after.e2el_ms.mean(), rel=0.1)


def test_steps_that_came_together_do_not_make_the_cache_larger() -> None:
    period = 400 * MS_NS

    def late(at: int) -> int:
        return max(at, at - at % period + 14 * MS_NS)

    answers = [answer.later(late) for answer in served(num_kv_tokens=1400, rate=10)]
    predicted = named(answers, "kv").predicted
    assert predicted is not None
    assert predicted.change == "2800 tokens of KV cache for 1400"


def test_a_second_replica_takes_every_other_request() -> None:
    predicted = named(served(**BIG_BATCHES), "decode-batch").predicted
    assert predicted is not None
    assert predicted.change == "two replicas for one"
    assert predicted.e2el.then_ms < predicted.e2el.now_ms / 2


def test_nothing_is_predicted_that_depends_on_an_unknown_cost_of_a_stream() -> None:
    requests = RequestColumns.of(records(served(max_num_seqs=3)))
    arrivals = Arrivals.of(requests)
    costs = fit(Steps.of(requests, arrivals))
    assert costs is not None
    for error_ms, is_known in ((costs.stream_error_ms, True), (1.0, False)):
        known = structs.replace(costs, stream_error_ms=error_ms)
        predicted = Replay(requests, arrivals, known, 3.0).first("max_num_seqs", "slots", 3)
        assert (predicted is not None) == is_known


def test_one_slot_does_not_tell_what_several_streams_cost() -> None:
    assert named(served(max_num_seqs=1, rate=3), "queue-slots").predicted is None


def test_requests_that_wait_for_others_are_not_replayed() -> None:
    waiting = [replace(answer, cap=30 * MS_NS) for answer in served(max_num_seqs=3)]
    later = [
        replace(answer.later(lambda at, cap=answer.cap: at + cap), sent=answer.sent + answer.cap)
        for answer in waiting
    ]
    assert named(later, "queue-slots").predicted is None


def test_a_closed_loop_whose_requests_would_come_sooner_is_not_replayed() -> None:
    answers = served(max_num_seqs=3)
    assert named(answers, "queue-slots").predicted is not None
    assert named(answers, "queue-slots", closed_loop=True).predicted is None


def test_a_change_that_only_makes_requests_slower_is_bad() -> None:
    def change(e2el_ms: float, gap_ms: float) -> PredictedChange:
        one = BeforeAfter(now_ms=100.0, then_ms=100.0)
        return PredictedChange(
            change="8 slots for 16",
            ttft_p50=one,
            ttft_p99=one,
            gap_p99=BeforeAfter(now_ms=100.0, then_ms=gap_ms),
            e2el=BeforeAfter(now_ms=100.0, then_ms=e2el_ms),
            error=0.0,
        )

    assert change(110.0, 80.0).is_bad
    assert change(130.0, 40.0).is_bad
    assert not change(110.0, 40.0).is_bad
    assert not change(90.0, 120.0).is_bad
