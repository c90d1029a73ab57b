"""SGLang: `python3 -m sglang.launch_server`."""

from collections.abc import Mapping
from typing import Any

from loadgen.engines.kinds.engine import CommandEngine, Probes
from loadgen.engines.kinds.knob_forms import (
    Flag,
    FlagGroup,
    Switch,
    attention_share,
    plain_flags,
    tensor_parallel_size,
)
from loadgen.engines.kinds.knob_table import KnobTable
from loadgen.engines.kinds.knobs import parse_speculation

METHODS = {
    "mtp": "NEXTN",
    "eagle": "EAGLE",
    "eagle3": "EAGLE3",
    "ngram": "NGRAM",
    "draft_model": "STANDALONE",
}


def _step_limits(tokens: int, knobs: Mapping[str, Any]) -> list[str]:
    """Return the flags that bound a step: the size of a prompt's chunk, and the prompt tokens
    taken together.
    """
    chunk = [] if knobs.get("chunked_prefill") is False else ["--chunked-prefill-size", str(tokens)]
    return [*chunk, "--max-prefill-tokens", str(tokens)]


def _speculative(value: Mapping[str, Any], knobs: Mapping[str, Any]) -> list[str]:
    """Return the flags of a draft chain: a step drafts one token, and the last accepted token is
    verified too.
    """
    draft = parse_speculation(value, METHODS)
    words = ["--speculative-algorithm", draft.method]
    if draft.model is not None:
        words += ["--speculative-draft-model-path", draft.model]
    if draft.method != "NGRAM":
        words += ["--speculative-num-steps", str(draft.tokens), "--speculative-eagle-topk", "1"]
    return [*words, "--speculative-num-draft-tokens", str(draft.tokens + 1)]


def _attention_copies(copies: int, knobs: Mapping[str, Any]) -> int:
    attention_share(knobs)
    return copies


TABLE = KnobTable(
    "sglang",
    {
        **plain_flags(
            {
                "host": "--host",
                "port": "--port",
                "model": "--model-path --model",
                "served_name": "--served-model-name",
                "tensor_parallel": "--tp-size --tensor-parallel-size",
                "pipeline_parallel": "--pp-size --pipeline-parallel-size",
                "data_parallel": "--dp-size --data-parallel-size",
                "context_len": "--context-length",
                "max_seqs": "--max-running-requests",
                "quantization": "--quantization",
                "kv_dtype": "--kv-cache-dtype",
                "attention_backend": "--attention-backend",
                "memory_fraction": "--mem-fraction-static",
                "reasoning_parser": "--reasoning-parser",
            }
        ),
        # The second form is deprecated: the copies are those of data_parallel.
        "attention_data_parallel": (
            Flag(
                "--attn-dp-size",
                ("--attention-data-parallel-size",),
                since="0.5.22",
                convert=_attention_copies,
            ),
            FlagGroup(
                {"--enable-dp-attention": ()},
                convert=lambda copies, knobs: [
                    "--dp-size",
                    str(_attention_copies(copies, knobs)),
                    "--enable-dp-attention",
                ],
            ),
        ),
        "expert_parallel": (
            Flag(
                "--ep-size",
                ("--expert-parallel-size", "--ep"),
                convert=tensor_parallel_size,
                note="the size of tensor_parallel",
            ),
        ),
        "max_batched_tokens": (
            FlagGroup(
                {"--chunked-prefill-size": (), "--max-prefill-tokens": ()}, convert=_step_limits
            ),
        ),
        "chunked_prefill": (Switch(off=("--chunked-prefill-size", "-1")),),
        "prefix_cache": (Switch(off=("--disable-radix-cache",)),),
        "speculative": (
            FlagGroup(
                {
                    "--speculative-algorithm": (),
                    "--speculative-draft-model-path": ("--speculative-draft-model",),
                    "--speculative-num-steps": (),
                    "--speculative-eagle-topk": (),
                    "--speculative-num-draft-tokens": (),
                },
                convert=_speculative,
            ),
        ),
    },
    abbreviates=True,
)

engine = CommandEngine(
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
