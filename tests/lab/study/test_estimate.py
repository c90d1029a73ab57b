"""Estimates of duration name their source; what cannot be estimated is left unknown."""

import math
from typing import Any

import pytest

from loadgen.config.presets import resolve
from loadgen.config.settings import RunSettings
from loadgen.engines import Launch
from loadgen.engines.kinds import simulator
from loadgen.lab.study.plan import estimate
from loadgen.lab.study.plan.estimate import (
    Span,
    billions,
    load,
    simulated,
    simulated_start,
    start,
)
from loadgen.lab.study.spec import stages
from tests.helpers.engine_launch import PLACE


def simulator_launch(flags: str) -> Launch:
    return simulator.engine.launch("sim-8b", {}, flags.split(), PLACE)


def never(engine: str, model: str) -> None:
    return None


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", 235),
        ("Qwen/Qwen3.5-9B", 9),
        ("Qwen/Qwen3-0.6B", 0.6),
        ("/models/SmolLM2-135M-Instruct.Q4_1.gguf", 0.135),
        ("openai/gpt-oss-120b", 120),
        ("sim", None),
        ("deepseek-ai/DeepSeek-V3", None),
        ("org/model-4bit", None),
    ],
)
def test_a_models_size_stands_in_its_name(model: str, size: float | None) -> None:
    assert billions(model) == (None if size is None else pytest.approx(size))


def test_a_start_takes_what_it_has_taken_here_before() -> None:
    found = start(
        "vllm",
        "Qwen/Qwen3-8B",
        lambda engine, model: 42.0 if (engine, model) == ("vllm", "Qwen/Qwen3-8B") else None,
    )
    assert found == Span(42.0, 42.0, "measured on this machine")


def test_a_start_that_was_never_seen_takes_what_is_usual_for_engine_and_size() -> None:
    small, large = (start("vllm", model, never) for model in ("Qwen3-8B", "Qwen3-235B-A22B"))
    assert (small.min_s, small.max_s) == (60, 300)
    assert (large.min_s, large.max_s) == (180, 600)
    assert small.basis == "usual for 8 billion parameters"
    assert start("vllm-ascend", "Qwen3-8B", never).max_s == 300
    assert start("unheard-of", "Qwen3-8B", never).max_s == 300
    unknown = start("vllm", "mine", never)
    assert (unknown.min_s, unknown.max_s, unknown.basis) == (60, 1800, "usual for any size")


def test_every_table_ends_with_whatever_size() -> None:
    for rows in (*estimate.STARTS.values(), estimate.ANY_ENGINE):
        assert rows[-1][0] == math.inf
        assert [row[0] for row in rows] == sorted(row[0] for row in rows)


def test_a_load_takes_its_tokens_over_the_rate_of_that_size_on_so_many_devices() -> None:
    settings = RunSettings(**resolve("long"))
    one = load(settings, "Qwen3-10B", 1)
    four = load(settings, "Qwen3-10B", 4)
    assert one is not None
    assert four is not None
    assert (one.min_s, one.max_s) == (500 * 4200 / 30_000, 500 * 4200 / 5_000)
    assert four.max_s == one.max_s / 4
    assert one.basis == "500 requests of 4,200 tokens at 5,000 to 30,000 tok/s, usual for 10B"


@pytest.mark.parametrize(
    ("workload", "tokens", "published_s"),
    [("gpustack-long-context", 100, 100.89), ("gpustack-generation-heavy", 2000, 214.96)],
)
def test_a_load_at_a_rate_ends_with_its_last_answer(
    workload: str, tokens: int, published_s: float
) -> None:
    settings = RunSettings(**resolve(workload))
    found = load(settings, "Qwen3.5-9B", 8)
    assert found is not None
    last_due_s = settings.num_prompts - 1  # one a second
    assert (found.min_s, found.max_s) == (last_due_s + tokens * 0.005, last_due_s + tokens * 0.08)
    assert found.min_s < published_s < found.max_s
    assert f"at 1 a second and the last answer of {tokens} tokens" in found.basis


def test_lengths_of_conversations_are_those_of_the_rule() -> None:
    assert estimate.tokens(RunSettings(**resolve("sharegpt"))) == (217, 202)
    assert estimate.tokens(RunSettings(**resolve("gpustack-sharegpt"))) == (342, 281)


def test_a_few_at_a_time_take_as_long_as_their_answers() -> None:
    found = load(RunSettings(**resolve("sharegpt-bs4")), "Qwen3-30B-A3B", 2)
    assert found is not None
    # published: 1,292 and 6,272 s
    assert (found.min_s, found.max_s) == (pytest.approx(1010), pytest.approx(6060))
    assert found.basis == "1000 answers of 202 tokens, 4 at a time, 20 to 120 ms a token"


@pytest.mark.parametrize(
    ("settings", "model", "devices"),
    [
        ({"dataset_name": "prose"}, "Qwen3-8B", 1),
        ({"random_input_len": "100:200"}, "Qwen3-8B", 1),
        ({}, "sim", 1),
        ({}, "Qwen3-8B", 0),
    ],
)
def test_duration_without_a_source_is_unknown(
    settings: dict[str, Any], model: str, devices: int
) -> None:
    assert load(RunSettings(**settings), model, devices) is None
    at_a_rate = load(RunSettings(**settings, request_rate=10.0, num_prompts=50), model, devices)
    assert at_a_rate is not None
    assert (at_a_rate.min_s, at_a_rate.max_s) == (4.9, 4.9)


# A step of 10 ms, whatever it computes.
STEPS_OF_10_MS = (
    "--step-base-ms 10 --decode-us-per-seq 0 --kv-ns-per-token 0 --prefill-us-per-token 0 "
    "--attention-ns-per-pair 0"
)


@pytest.mark.parametrize(
    ("settings", "raw", "min_s", "max_s"),
    [
        # Ten requests of ten steps, one after the other; the last one ends at most an answer later.
        ({"max_concurrency": 1}, "", 1.0, 1.1),
        ({"max_concurrency": 5}, "", 0.2, 0.3),
        ({"max_concurrency": 5}, "--max-num-seqs 1", 1.0, 1.1),
        ({"request_rate": 3.0}, "", 3.0, 3.1),  # the last one is due after 3 s
    ],
)
def test_a_load_of_the_simulator_takes_what_its_steps_take(
    settings: dict[str, Any], raw: str, min_s: float, max_s: float
) -> None:
    load_ = RunSettings(random_input_len=100, random_output_len=10, num_prompts=10, **settings)
    span = simulated(load_, [simulator_launch(f"{STEPS_OF_10_MS} {raw}")])
    assert span is not None
    assert (span.min_s, span.max_s) == (pytest.approx(min_s, 0.02), pytest.approx(max_s, 0.02))
    assert span.basis == "10 requests of 110 tokens by the simulator's costs"


def test_simulators_share_the_requests() -> None:
    load_ = RunSettings(
        random_input_len=100, random_output_len=10, num_prompts=10, max_concurrency=2
    )
    span = simulated(load_, [simulator_launch(STEPS_OF_10_MS)] * 2)
    assert span is not None
    assert span.min_s == pytest.approx(0.5, 0.02)


def test_a_simulator_starts_when_its_command_says() -> None:
    usual = start("sim", "any", never)
    assert simulated_start(simulator_launch(""), usual) == usual
    assert simulated_start(simulator_launch("--startup-s 30"), usual) == Span(
        30.1, 31, "--startup-s, and usual for any size"
    )


def test_a_duration_is_what_it_says() -> None:
    found = load(RunSettings(duration=30, request_rate=2.0), "sim", 0)
    assert found == Span(30, 30, "its duration")


@pytest.mark.parametrize(
    ("given", "ends", "has", "has_not"),
    [
        (stages.Log2Range(log2=[4, 16]), [4, 16], [4, 8, 16], [2, 6, 32, 8.0, True]),
        (stages.IntRange(int_=[1, 8], step=3), [1, 7], [1, 4, 7], [0, 2, 8, 10, 4.0]),
        (stages.Categorical(choice=["a", None]), ["a", None], ["a", None], ["b"]),
    ],
)
def test_a_range_knows_its_ends_and_what_may_be_drawn(
    given: Any, ends: Any, has: Any, has_not: Any
) -> None:
    assert given.ends() == ends
    assert all(given.has(value) for value in has)
    assert not any(given.has(value) for value in has_not)
