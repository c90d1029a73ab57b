"""What the server's metrics say decides which queue it was, and how a knob is spelled."""

from typing import Any

import pytest
from msgspec import structs

from loadgen.explanation.explainer import explain
from loadgen.explanation.server_words import ServerWords
from loadgen.metrics.server.series import FIRST, LAST, SourceSeries
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.report.result.explanation import NamedCause
from tests.helpers.planted_records import records, served

NAMES = {"running": "vllm:num_requests_running", "waiting": "vllm:num_requests_waiting"}


def telemetry(names: dict[str, str] = NAMES, **series: list[float]) -> Telemetry:
    """The metrics of one server, once a second."""
    count = len(next(iter(series.values())))
    source = SourceSeries(
        url="http://127.0.0.1/metrics",
        target="http://127.0.0.1",
        at_s=[float(second) for second in range(count)],
        took_ms=[1.0] * count,
        moments=["tick"] * count,
        failed=[None] * count,
        names=names,
        series=dict(series),
        restarts=0,
    )
    return Telemetry(sources=(source,))


def first(metrics: Telemetry, **limits: Any) -> NamedCause:
    explanation = explain(records(served(**limits)), metrics)
    assert explanation is not None
    return explanation.causes[0]


def test_running_requests_at_their_limit_are_a_queue_for_slots() -> None:
    cause = first(telemetry(running=[3, 3, 3, 2], waiting=[4, 9, 12, 0]), max_num_seqs=3)
    assert cause.name == "queue-slots"
    assert cause.evidence == "3.0 of at most 3 requests ran while up to 12 waited"
    assert cause.advice.startswith("raise --max-num-seqs ")


def test_running_requests_below_their_limit_wait_for_steps() -> None:
    cause = first(telemetry(running=[1, 2, 8, 2], waiting=[4, 9, 0, 6]), max_num_seqs=3)
    assert cause.name == "queue-prefill"
    assert cause.evidence == "1 to 8 requests ran while up to 9 waited"


def test_preemptions_are_a_full_cache() -> None:
    metrics = telemetry(
        NAMES
        | {"preemptions": "vllm:num_preemptions_total", "kv_usage": "vllm:kv_cache_usage_perc"},
        running=[3, 3],
        waiting=[2, 4],
        preemptions=[0, 7],
        kv_usage=[0.9, 0.97],
    )
    cause = first(metrics, max_num_seqs=3)
    assert cause.name == "kv"
    assert cause.evidence == "7 preemptions, KV cache up to 97% full"


def test_a_preemption_alone_makes_no_queue_one_for_the_cache() -> None:
    names = NAMES | {"preemptions": "vllm:num_preemptions_total"}
    metrics = telemetry(names, running=[3, 3, 3], waiting=[2, 4, 3], preemptions=[0, 1, 1])
    assert first(metrics, max_num_seqs=3).name == "queue-slots"


@pytest.mark.filterwarnings("error")
def test_what_a_server_did_not_say_is_no_evidence() -> None:
    names = NAMES | {"preemptions": "vllm:num_preemptions_total"}
    metrics = telemetry(names, running=[3, 3, 3], waiting=[2, 4, 3], preemptions=[0, 7, 7])
    assert first(metrics, max_num_seqs=3).evidence == "7 preemptions"
    silent = telemetry(running=[3.0, float("nan"), float("nan")], waiting=[0, 4, 5])
    assert "streams at once" in first(silent, max_num_seqs=3).evidence


@pytest.mark.parametrize(
    ("metric", "slots"),
    [
        ("vllm:num_requests_running", "--max-num-seqs"),
        ("sglang:num_running_reqs", "--max-running-requests"),
        ("llamacpp:requests_processing", "--parallel"),
    ],
)
def test_a_knob_is_spelled_as_the_engine_does(metric: str, slots: str) -> None:
    words = ServerWords.of(telemetry({"running": metric}, running=[1.0, 2.0]))
    assert slots in words.knobs["max_seqs"]


@pytest.mark.parametrize(
    ("prefill_s", "name"),
    [(15.0, "prefill-own"), (-15.0, "front-or-prompt"), (1e9, "front-or-prompt")],
)
def test_the_mean_of_the_server_tells_prompts_of_one_length_from_the_way(
    prefill_s: float, name: str
) -> None:
    """The server's word for 150 prompts, which is not believed where it is impossible."""
    metrics = telemetry(prefill_sum=[0.0, prefill_s], prefill_count=[0.0, 150.0])
    (source,) = metrics.sources
    metrics = Telemetry(sources=(structs.replace(source, moments=[FIRST, LAST]),))
    alone: dict[str, Any] = {"prompts": (1000, 1000), "answers": (4, 12), "prompt_us": 100}
    cause = first(metrics, outside_ms=1, rate=0.4, seed=2, **alone)
    assert cause.name == name


def test_several_servers_say_nothing_of_one() -> None:
    (source,) = telemetry(running=[1.0], waiting=[2.0]).sources
    words = ServerWords.of(Telemetry(sources=(source, source)))
    assert not words.tells_queue
    assert words.knobs == {}
