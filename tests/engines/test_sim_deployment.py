"""Profiles: costs and sizes by engines/sim/EQUATIONS.md, against published figures."""

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

from loadgen.engines.launch.crash_cause import diagnose
from loadgen.engines.sim.deployment import (
    FORMATS,
    GIB,
    GPUS,
    KV_BYTES,
    MODELS,
    PROFILES,
    Deployment,
    StartFailed,
)
from loadgen.engines.sim.settings import Faults, SimSettings, flag, log_of
from loadgen.errors import BadInput
from tests.engines.profile_table import BEGIN, DOCUMENT, END, written
from tests.helpers.documents import found_between


def deployed(profile: str = "h100-qwen3-8b", **others: Any) -> Deployment:
    gpu, _, model = profile.partition("-")
    plain = Deployment(
        gpu=GPUS[gpu],
        model=MODELS[model],
        weights=FORMATS[""],
        kv_bytes=2.0,
        tensor_parallel=1,
        pipeline_parallel=1,
        utilization=0.9,
    )
    return replace(plain, **others)


@pytest.mark.parametrize(
    ("name", "billions"), [("qwen3-8b", 8.19), ("qwen3-14b", 14.77), ("qwen3-32b", 32.76)]
)
def test_models_have_the_parameters_that_were_published(name: str, billions: float) -> None:
    model = MODELS[name]
    assert (model.layer_parameters + 2 * model.output_parameters) / 1e9 == pytest.approx(
        billions, abs=0.01
    )


def test_vllm_s_own_figures_for_the_8b_model_come_out() -> None:
    assert deployed().weight_bytes / GIB == pytest.approx(15.27, abs=0.02)
    assert 40960 * deployed().kv_token_bytes / GIB == pytest.approx(5.62, abs=0.01)


def test_a_lone_decode_reads_all_weights_once() -> None:
    read = 2 * (MODELS["qwen3-8b"].layer_parameters + MODELS["qwen3-8b"].output_parameters)
    costs = deployed().step_costs()
    assert costs.duration_ns(0, 1, 0) - costs.base_ns - costs.decode_ns_per_seq == pytest.approx(
        read / 3.35e12 / 0.8 * 1e9
    )


def test_long_prompt_costs_two_flops_per_parameter_and_token() -> None:
    costs, tokens = deployed().step_costs(), 8192
    computed = costs.duration_ns(tokens, 0, 0) - costs.base_ns
    assert computed == pytest.approx(
        2 * MODELS["qwen3-8b"].layer_parameters * tokens / 989e12 / 0.6 * 1e9
    )


def test_attention_costs_as_much_as_the_rest_at_some_length() -> None:
    costs = deployed().step_costs()
    length = 2 * costs.matmul_ns_per_token / costs.attention_ns_per_pair
    assert 40_000 < length < 60_000


def test_two_gpus_halve_what_is_shared_and_pay_for_talking() -> None:
    one, two = deployed().step_costs(), deployed(tensor_parallel=2).step_costs()
    assert two.weights_ns == pytest.approx(one.weights_ns / 2)
    assert two.matmul_ns_per_token == pytest.approx(one.matmul_ns_per_token / 2)
    assert two.kv_ns_per_token == pytest.approx(one.kv_ns_per_token / 2)
    assert (one.prefill_ns_per_token, two.base_ns - one.base_ns) == (0, pytest.approx(2 * 36 * 8e3))
    assert two.prefill_ns_per_token == pytest.approx(2 * 36 * 4096 * 2 / 450e9 / 0.7 * 1e9)


def test_pipeline_divides_computation_but_not_weight_reads() -> None:
    one, two = deployed().step_costs(), deployed(pipeline_parallel=2).step_costs()
    assert two.weights_ns == one.weights_ns
    assert two.matmul_ns_per_token == one.matmul_ns_per_token / 2
    assert two.base_ns == 2 * one.base_ns
    assert deployed(pipeline_parallel=2).weight_bytes == deployed().weight_bytes / 2


def test_more_gpus_than_kv_heads_replicate_heads() -> None:
    assert deployed(tensor_parallel=16).kv_token_bytes == deployed(tensor_parallel=8).kv_token_bytes


@pytest.mark.parametrize(("gpu", "faster"), [("h100", 1979 / 989), ("a100", 1.0)])
def test_fp8_weights_halve_reads_and_speed_up_matmul(gpu: str, faster: float) -> None:
    full, fp8 = (
        deployed(f"{gpu}-qwen3-8b", weights=FORMATS[name]).step_costs() for name in ("", "fp8")
    )
    assert full.matmul_ns_per_token / fp8.matmul_ns_per_token == pytest.approx(faster)
    assert 0.5 < fp8.weights_ns / full.weights_ns < 0.6  # the output layer stays as it is


def test_4_bits_are_read_faster_and_computed_as_before() -> None:
    full, awq = (deployed(weights=FORMATS[name]).step_costs() for name in ("", "awq"))
    assert awq.matmul_ns_per_token == full.matmul_ns_per_token
    assert awq.weights_ns < 0.4 * full.weights_ns


def test_fp8_cache_doubles_tokens_and_halves_reads() -> None:
    full, half = deployed(), deployed(kv_bytes=KV_BYTES["fp8"])
    assert half.kv_tokens(8192, 1) == pytest.approx(2 * full.kv_tokens(8192, 1), abs=1)
    assert half.step_costs().kv_ns_per_token == full.step_costs().kv_ns_per_token / 2


def test_the_cache_is_what_weights_and_steps_leave_of_the_memory() -> None:
    flows = 8192 * (4 * 4096 + 2 * 12288) * 2
    free = 0.9 * 80 * GIB - deployed().weight_bytes - 1.5 * GIB - flows
    assert deployed().kv_tokens(8192, 40960) == int(free / (2 * 36 * 8 * 128 * 2))


MEMORY = [
    (
        "a100-qwen3-32b",
        {},
        "oom_kv",
        r"max seq len \(40960\), \(10.00 GiB KV cache is needed, which is larger",
    ),
    (
        "a100-qwen3-32b",
        {"utilization": 0.7},
        "oom_kv",
        r"No available memory for the cache blocks\. Try increasing",
    ),
    ("small-qwen3-14b", {}, "oom_load", r"CUDA out of memory\. Tried to allocate"),
]


@pytest.mark.parametrize(("profile", "others", "kind", "said"), MEMORY)
def test_deployment_without_memory_fails_with_vllm_text(
    profile: str, others: dict[str, Any], kind: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GPUS, "small", replace(GPUS["a100"], memory_bytes=24 * GIB))
    with pytest.raises(StartFailed, match=said) as failed:
        deployed(profile, **others).kv_tokens(2048, 40960)
    crash = diagnose(log_of(str(failed.value)), 1)
    assert crash.kind == kind
    assert crash.cause == str(failed.value)


def test_the_length_that_vllm_s_words_suggest_has_room() -> None:
    with pytest.raises(StartFailed) as failed:
        deployed("a100-qwen3-32b").kv_tokens(2048, 40960)
    length = int(str(failed.value).partition("maximum model length is ")[2].partition(".")[0])
    assert deployed("a100-qwen3-32b").kv_tokens(2048, length) == length


@pytest.mark.parametrize(
    ("others", "field"),
    [({"tensor_parallel": 3}, "--tensor-"), ({"pipeline_parallel": 5}, "--pipeline-")],
)
def test_a_model_that_cannot_be_cut_so_is_refused(others: dict[str, int], field: str) -> None:
    with pytest.raises(BadInput, match=f"^{field}parallel-size: .* does not divide the model's"):
        deployed(**others)


def test_every_profile_has_costs() -> None:
    for profile in PROFILES:
        assert deployed(profile).step_costs().duration_ns(1024, 8, 1024) > 0


def test_the_document_says_what_the_profiles_come_to() -> None:
    assert found_between(DOCUMENT, BEGIN, END).strip() == written(), (
        "python -m tests.engines.profile_table"
    )


def test_document_names_every_simulator_flag() -> None:
    text = DOCUMENT.read_text()
    plain = {"host", "port", "served_model_name"}
    for field in (*dataclasses.fields(SimSettings), *dataclasses.fields(Faults)):
        assert field.name in plain or field.name in text or flag(field.name) in text, field.name
