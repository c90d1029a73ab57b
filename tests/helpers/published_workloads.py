"""What the performance lab's five pages serve and send: GPUStack's published tuning of five models.

Every serving command that they print or name in a result's comment, as it is printed.
"""

from dataclasses import dataclass, replace
from typing import Any

from loadgen.engines.kinds import mindie, sglang, trtllm, vllm
from loadgen.engines.kinds.engine import Engine

VLLM_11, VLLM_17 = (replace(vllm.engine, release=version) for version in ("0.11.0", "0.17.1"))
ASCEND = replace(vllm.ascend, release="0.9.1")
SGLANG_5, SGLANG_9 = (
    replace(sglang.engine, release=version) for version in ("0.5.5.post1", "0.5.9")
)
TRTLLM = replace(trtllm.engine, release="1.2.0rc1")
MINDIE = replace(mindie.engine, release="2.1RC1")

LATER: dict[str, Any] = {"reasoning_parser": "qwen3", "context_len": 32768}
FAST = LATER | {"performance_mode": "throughput"}
ON_9B = "vllm serve Qwen/Qwen3.5-9B --reasoning-parser=qwen3 --max-model-len=32768"
FAST_ON_9B = f"{ON_9B} --performance-mode=throughput"
LAUNCH = "python3 -m sglang.launch_server --model-path"
ON_235B = "vllm serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8"

# page, command, engine, knobs
COMMANDS: list[tuple[str, str, Engine, dict[str, Any]]] = [
    (
        "qwen3-32b",
        "vllm serve Qwen/Qwen3-32B --max-model-len 32768",
        VLLM_11,
        {"context_len": 32768},
    ),
    ("qwen3-32b", f"{LAUNCH} Qwen/Qwen3-32B", SGLANG_5, {}),
    ("qwen3-32b", "trtllm-serve Qwen/Qwen3-32B", TRTLLM, {}),
    ("qwen3-32b", "trtllm-serve Qwen/Qwen3-32B-FP8", TRTLLM, {}),
    ("qwen3-32b", "trtllm-serve Qwen/Qwen3-32B-AWQ", TRTLLM, {}),
    ("qwen3-32b", "vllm serve Qwen/Qwen3-32B-FP8", VLLM_11, {}),
    ("qwen3-32b", "vllm serve Qwen/Qwen3-32B-AWQ", VLLM_11, {}),
    (
        "qwen3-32b",
        "trtllm-serve Qwen/Qwen3-14B --max_num_tokens=16384",
        TRTLLM,
        {"max_batched_tokens": 16384},
    ),
    (
        "qwen3-32b",
        "trtllm-serve Qwen/Qwen3-32B --max_num_tokens=32768",
        TRTLLM,
        {"max_batched_tokens": 32768},
    ),
    ("qwen3-32b", "vllm serve Qwen/Qwen3-32B", VLLM_11, {}),
    (
        "qwen3-32b",
        "trtllm-serve Qwen/Qwen3-32B --max_seq_len=40960 --enable_chunked_prefill",
        TRTLLM,
        {"context_len": 40960, "chunked_prefill": True},
    ),
    (
        "qwen3-235b-a22b",
        "vllm serve Qwen/Qwen3-235B-A22B-Instruct-2507 -tp 8",
        VLLM_11,
        {"tensor_parallel": 8},
    ),
    (
        "qwen3-235b-a22b",
        f"{LAUNCH} Qwen/Qwen3-235B-A22B-Instruct-2507 --tp-size 8",
        SGLANG_5,
        {"tensor_parallel": 8},
    ),
    (
        "qwen3-235b-a22b",
        f"{ON_235B} -tp 8 --enable-expert-parallel",
        VLLM_11,
        {"tensor_parallel": 8, "expert_parallel": True},
    ),
    ("qwen3-235b-a22b", f"{ON_235B} -tp 4", VLLM_11, {"tensor_parallel": 4}),
    (
        "qwen3-235b-a22b",
        f"{ON_235B} -tp 4 --enable-expert-parallel",
        VLLM_11,
        {"tensor_parallel": 4, "expert_parallel": True},
    ),
    *(
        (
            "qwen3-235b-a22b",
            f"{ON_235B} -tp 4 --max-num-batched-tokens {tokens}",
            VLLM_11,
            {"tensor_parallel": 4, "max_batched_tokens": tokens},
        )
        for tokens in (4096, 8192)
    ),
    ("qwen3-14b", "vllm serve Qwen/Qwen3-14B", VLLM_11, {}),
    ("qwen3-14b", f"{LAUNCH} Qwen/Qwen3-14B", SGLANG_5, {}),
    ("qwen3-14b", "trtllm-serve Qwen/Qwen3-14B", TRTLLM, {}),
    ("qwen3-14b", f"{LAUNCH} Qwen/Qwen3-14B-FP8", SGLANG_5, {}),
    *(
        (
            "qwen3-14b",
            f"{LAUNCH} Qwen/Qwen3-14B-FP8 --attention-backend={backend}",
            SGLANG_5,
            {"attention_backend": backend},
        )
        for backend in ("fa3", "flashinfer", "triton")
    ),
    ("qwen3.5-9b", ON_9B, VLLM_17, LATER),
    (
        "qwen3.5-9b",
        f"{LAUNCH} Qwen/Qwen3.5-9B --reasoning-parser=qwen3 --context-length=32768",
        SGLANG_9,
        LATER,
    ),
    ("qwen3.5-9b", f"{ON_9B} --enable-prefix-caching", VLLM_17, LATER | {"prefix_cache": True}),
    (
        "qwen3.5-9b",
        f'{ON_9B} --speculative-config={{"method":"mtp","num_speculative_tokens":4}}',
        VLLM_17,
        LATER | {"speculative": {"num_speculative_tokens": 4, "method": "mtp"}},
    ),
    ("qwen3.5-9b", FAST_ON_9B, VLLM_17, FAST),
    *(
        ("qwen3.5-9b", f"{ON_9B} --max-num-seqs={seqs}", VLLM_17, LATER | {"max_seqs": seqs})
        for seqs in (512, 1024, 2048)
    ),
    *(
        (
            "qwen3.5-9b",
            f"{FAST_ON_9B} --max-num-batched-tokens={tokens}",
            VLLM_17,
            FAST | {"max_batched_tokens": tokens},
        )
        for tokens in (24576, 32768)
    ),
    *(
        ("qwen3.5-9b", f"{FAST_ON_9B} --max-num-seqs={seqs}", VLLM_17, FAST | {"max_seqs": seqs})
        for seqs in (256, 512)
    ),
    *(
        (
            "qwen3.5-9b",
            f"{FAST_ON_9B} --max-num-batched-tokens={tokens} --max-num-seqs={seqs}",
            VLLM_17,
            FAST | {"max_batched_tokens": tokens, "max_seqs": seqs},
        )
        for tokens, seqs in ((32768, 512), (49152, 512), (49152, 768))
    ),
    ("qwen3-30b-a3b", "vllm serve Qwen/Qwen3-30B-A3B -tp 2", ASCEND, {"tensor_parallel": 2}),
    ("qwen3-30b-a3b", "mindie serve Qwen/Qwen3-30B-A3B", MINDIE, {}),
    ("qwen3-30b-a3b", "mindie serve Qwen3-30B-A3B", MINDIE, {}),
    (
        "qwen3-30b-a3b",
        "mindie serve Qwen3-30B-A3B --enable-prefix-caching",
        MINDIE,
        {"prefix_cache": True},
    ),
    ("qwen3-30b-a3b", "mindie serve vllm-ascend/Qwen3-8B-W8A8", MINDIE, {}),
]


@dataclass(frozen=True)
class Misprint:
    """A command that names what was not served.

    Attributes:
        line: Of the page.
        printed: As it stands there.
        meant: What was served.
    """

    line: int
    printed: str
    meant: str


MISPRINTS: dict[str, tuple[Misprint, ...]] = {
    "qwen3-32b": (
        Misprint(
            277,
            "trtllm-serve Qwen/Qwen3-14B --max_num_tokens=16384",
            "trtllm-serve Qwen/Qwen3-32B --max_num_tokens=16384",
        ),
    ),
    "qwen3-30b-a3b": (
        # The same model under two names: 13 and 119.
        Misprint(119, "mindie serve Qwen3-30B-A3B", "mindie serve Qwen/Qwen3-30B-A3B"),
        Misprint(
            157,
            "mindie serve Qwen3-30B-A3B --enable-prefix-caching",
            "mindie serve Qwen/Qwen3-30B-A3B --enable-prefix-caching",
        ),
        Misprint(
            171,
            "mindie serve vllm-ascend/Qwen3-8B-W8A8",
            "mindie serve vllm-ascend/Qwen3-30B-A3B-W8A8",
        ),
    ),
}
VLLM_BENCH = ("sharegpt", "short", "medium", "long", "very-long")
WORKLOADS: dict[str, tuple[str, ...]] = {
    "qwen3-32b": VLLM_BENCH,
    "qwen3-235b-a22b": VLLM_BENCH,
    "qwen3-14b": VLLM_BENCH,
    "qwen3.5-9b": (
        "gpustack-sharegpt",
        "gpustack-throughput",
        "gpustack-long-context",
        "gpustack-generation-heavy",
    ),
    "qwen3-30b-a3b": (*VLLM_BENCH, "sharegpt-bs4"),
}
