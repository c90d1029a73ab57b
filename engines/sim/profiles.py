"""Profiles: GPUs and models by name, and the simulator's settings for a model on a GPU."""

from collections.abc import Mapping
from typing import Any

from loadgen.engines.sim.deployment import GIB, Deployment, Format, Gpu, Model
from loadgen.errors import BadInput

# Data sheets of NVIDIA's SXM modules, without sparsity; the last two numbers are vLLM's defaults for such a GPU.
GPUS = {
    "a100": Gpu(312e12, 0, 2.039e12, 80 * GIB, 300e9, 256, 2048),
    "h100": Gpu(989e12, 1979e12, 3.35e12, 80 * GIB, 450e9, 1024, 8192),
    "h200": Gpu(989e12, 1979e12, 4.8e12, 141 * GIB, 450e9, 1024, 8192),
}
# The config.json of each.
MODELS = {
    "qwen3-8b": Model(36, 4096, 32, 8, 128, 12288, 151936, 40960),
    "qwen3-14b": Model(40, 5120, 40, 8, 128, 17408, 151936, 40960),
    "qwen3-32b": Model(64, 5120, 64, 8, 128, 25600, 151936, 40960),
}
PROFILES = tuple(f"{gpu}-{model}" for gpu in GPUS for model in MODELS)
# Groups of 128 four-bit weights have a scale and a zero point of two bytes each.
FORMATS = {"": Format(2.0), "fp8": Format(1.0, fp8=True), "awq": Format(0.5 + 4 / 128), "gptq": Format(0.5 + 4 / 128)}
KV_BYTES = {"auto": 2.0, "bfloat16": 2.0, "fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0}
# Settings that give the costs of a step: the coefficient of `StepCosts`, and how many ns the unit has.
COSTS = {
    "step_base_ms": ("base_ns", 1e6),
    "weights_ms": ("weights_ns", 1e6),
    "matmul_us_per_token": ("matmul_ns_per_token", 1e3),
    "prefill_us_per_token": ("prefill_ns_per_token", 1e3),
    "decode_us_per_seq": ("decode_ns_per_seq", 1e3),
    "kv_ns_per_token": ("kv_ns_per_token", 1),
    "attention_ns_per_pair": ("attention_ns_per_pair", 1),
}
FRONTEND_MS = 3.0  # assumed: parsing a request, applying the template, tokenizing


def deployment(settings: Mapping[str, Any]) -> Deployment:
    """Return the deployment of a profile and the settings that modify it.

    Raises:
        BadInput: The profile is unknown, or the model cannot be split as requested.
    """
    name = settings["profile"]
    if name not in PROFILES:
        raise BadInput("--profile", f"unknown profile {name!r}", f"use one of {', '.join(PROFILES)}")
    gpu, _, model = name.partition("-")
    return Deployment(
        gpu=GPUS[gpu],
        model=MODELS[model],
        weights=FORMATS[settings["quantization"]],
        kv_bytes=KV_BYTES[settings["kv_cache_dtype"]],
        tensor_parallel=settings["tensor_parallel_size"],
        pipeline_parallel=settings["pipeline_parallel_size"],
        utilization=settings["gpu_memory_utilization"],
    )


def profile_settings(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a profile determines.

    Args:
        settings: All settings, with the defaults without a profile.
        given: Settings that the user gave; a profile does not change them.

    Raises:
        BadInput: As `deployment`.
        StartFailed: The model does not fit into the GPUs' memory.
    """
    deployed = deployment(settings)
    gpu, costs = deployed.gpu, deployed.step_costs()
    length = given.get("max_model_len", deployed.model.context)
    min_batch = length if given.get("enable_chunked_prefill") is False else 0
    seqs = given.get("max_num_seqs", gpu.max_num_seqs)
    batch = given.get("max_num_batched_tokens", max(gpu.max_num_batched_tokens, min_batch, seqs))
    determined = {
        "max_model_len": length,
        "max_num_seqs": seqs,
        "max_num_batched_tokens": batch,
        "enable_prefix_caching": True,
        **{name: getattr(costs, coefficient) / unit_ns for name, (coefficient, unit_ns) in COSTS.items()},
        "frontend_ms": FRONTEND_MS,
        "startup_s": deployed.startup_s,
    }
    if "num_kv_tokens" not in given:
        determined["num_kv_tokens"] = deployed.kv_tokens(batch, length)
    return determined
