"""The simulator's settings: ranges, contradictions, and the values of a profile."""

from typing import Any

import pytest

from loadgen.engines.sim.server import START_SEED, noise_seed
from loadgen.engines.sim.settings import SimSettings, given, parser
from loadgen.errors import BadInput


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"step_base_ms": 0.0}, "--step-base-ms"),
        ({"decode_us_per_seq": float("nan")}, "--decode-us-per-seq"),
        ({"port": 65536}, "--port"),
        ({"gpu_memory_utilization": 1.1}, "--gpu-memory-utilization"),
        ({"quantization": "int3"}, "--quantization"),
        ({"kv_cache_dtype": "int3"}, "--kv-cache-dtype"),
        ({"max_num_batched_tokens": 100}, "--max-num-batched-tokens"),
        ({"num_kv_tokens": 1000}, "--num-kv-tokens"),
        ({"enable_chunked_prefill": False}, "--max-num-batched-tokens"),
        ({"profile": "h100-gpt5"}, "--profile"),
        ({"tensor_parallel_size": 2}, "--tensor-parallel-size"),
        ({"quantization": "fp8"}, "--quantization"),
        ({"profile": "h100-qwen3-8b", "tensor_parallel_size": 3}, "--tensor-parallel-size"),
    ],
)
def test_invalid_settings_are_refused_by_flag(given: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as refused:
        SimSettings.of(**given)
    assert refused.value.field == field
    assert refused.value.remedy


def test_without_a_profile_everything_is_as_it_was_declared() -> None:
    assert SimSettings.of() == SimSettings()
    assert SimSettings.of(tensor_parallel_size=1, max_num_seqs=3) == SimSettings(max_num_seqs=3)


def test_a_profile_decides_what_is_not_given() -> None:
    settings = SimSettings.of(profile="h100-qwen3-8b")
    assert (settings.max_model_len, settings.max_num_seqs, settings.max_num_batched_tokens) == (
        40960,
        1024,
        8192,
    )
    assert settings.enable_prefix_caching
    assert settings.startup_s > 20
    assert settings.weights_ms > 5
    assert settings.costs.weights_ns == pytest.approx(settings.weights_ms * 1e6)


def test_given_settings_override_the_profile() -> None:
    given = {
        "weights_ms": 1.0,
        "num_kv_tokens": 50_000,
        "startup_s": 0.0,
        "enable_prefix_caching": False,
    }
    settings = SimSettings.of(profile="a100-qwen3-32b", **given)  # whose own cache would not do
    assert {name: getattr(settings, name) for name in given} == given


def test_larger_steps_leave_less_cache() -> None:
    small, large = (
        SimSettings.of(profile="h100-qwen3-8b", max_num_batched_tokens=size)
        for size in (2048, 32768)
    )
    assert small.num_kv_tokens > large.num_kv_tokens


def test_without_chunks_a_step_has_room_for_the_longest_prompt() -> None:
    settings = SimSettings.of(
        profile="h100-qwen3-8b", enable_chunked_prefill=False, max_model_len=20_000
    )
    assert settings.max_num_batched_tokens == 20_000


def test_vllm_s_short_names_mean_the_same() -> None:
    flags = parser().parse_args(
        ["--profile", "h100-qwen3-8b", "-tp", "2", "-pp", "3", "-dp", "4", "-q", "fp8"]
    )
    settings = SimSettings.of(**given(flags, SimSettings))
    assert (
        settings.tensor_parallel_size,
        settings.pipeline_parallel_size,
        settings.data_parallel_size,
    ) == (2, 3, 4)
    assert settings.quantization == "fp8"


class TestNoiseSeed:
    """The seed of the noise is a flag, or the variable that a study sets."""

    def test_of_the_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(START_SEED, "7")
        assert noise_seed() == {"noise_seed": 7}

    def test_is_left_alone_without_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(START_SEED, raising=False)
        assert noise_seed() == {}

    def test_that_is_no_number_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(START_SEED, "x")
        with pytest.raises(BadInput, match="LOADGEN_START_SEED: 'x' is not a whole number"):
            noise_seed()
