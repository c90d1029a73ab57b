"""SGLang."""

from collections.abc import Mapping
from typing import Any

from loadgen.engines import speculation
from loadgen.engines.command import Command
from loadgen.engines.engine import Probes
from loadgen.engines.table import Table
from loadgen.engines.ways import Flag, Switch, Words, group_size

METHODS = {"mtp": "NEXTN", "eagle": "EAGLE", "eagle3": "EAGLE3", "ngram": "NGRAM", "draft_model": "STANDALONE"}


def _batched(tokens: int, knobs: Mapping[str, Any]) -> list[str]:
    """A step is bounded by the size of a piece of a prompt, and by the prompts that are taken into it together."""
    piece = [] if knobs.get("chunked_prefill") is False else ["--chunked-prefill-size", str(tokens)]
    return [*piece, "--max-prefill-tokens", str(tokens)]


def _speculative(value: Mapping[str, Any], knobs: Mapping[str, Any]) -> list[str]:
    """A chain: each step drafts one token more, and the last accepted token is verified with them."""
    draft = speculation.read(value, METHODS)
    words = ["--speculative-algorithm", draft.method]
    if draft.model is not None:
        words += ["--speculative-draft-model-path", draft.model]
    if draft.method != "NGRAM":
        words += ["--speculative-num-steps", str(draft.tokens), "--speculative-eagle-topk", "1"]
    return [*words, "--speculative-num-draft-tokens", str(draft.tokens + 1)]


TABLE = Table(
    "sglang",
    {
        "host": (Flag("--host"),),
        "port": (Flag("--port"),),
        "model": (Flag("--model-path", ("--model",)),),
        "served_name": (Flag("--served-model-name"),),
        "tensor_parallel": (Flag("--tp-size", ("--tensor-parallel-size",)),),
        "pipeline_parallel": (Flag("--pp-size", ("--pipeline-parallel-size",)),),
        "data_parallel": (Flag("--dp-size", ("--data-parallel-size",)),),
        "expert_parallel": (
            Flag("--ep-size", ("--expert-parallel-size", "--ep"), of=group_size, note="the size of tensor_parallel"),
        ),
        "context_len": (Flag("--context-length"),),
        "max_batched_tokens": (Words({"--chunked-prefill-size": (), "--max-prefill-tokens": ()}, of=_batched),),
        "max_seqs": (Flag("--max-running-requests"),),
        "chunked_prefill": (Switch(off=("--chunked-prefill-size", "-1")),),
        "prefix_cache": (Switch(off=("--disable-radix-cache",)),),
        "quantization": (Flag("--quantization"),),
        "kv_dtype": (Flag("--kv-cache-dtype"),),
        "attention_backend": (Flag("--attention-backend"),),
        "speculative": (
            Words(
                {
                    "--speculative-algorithm": (),
                    "--speculative-draft-model-path": ("--speculative-draft-model",),
                    "--speculative-num-steps": (),
                    "--speculative-eagle-topk": (),
                    "--speculative-num-draft-tokens": (),
                },
                of=_speculative,
            ),
        ),
        "memory_fraction": (Flag("--mem-fraction-static"),),
        "reasoning_parser": (Flag("--reasoning-parser"),),
    },
    abbreviates=True,
)

engine = Command(
    name="sglang",
    head=("python3", "-m", "sglang.launch_server", "--model-path"),
    table=TABLE,
    probes=Probes(
        health="/health_generate",
        metrics="/metrics",
        version="/server_info",
        resolved="/server_info",
        flush=("/flush_cache",),
    ),
    packages=("sglang",),
    always=("--enable-metrics",),
)
