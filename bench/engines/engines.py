"""The real engines that run on a machine without an accelerator, each in an environment of its
own.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench.engines import recipes, xpyd
from bench.engines.environments import CACHE, Recipe, made
from bench.engines.tiny_qwen3 import tiny_qwen3
from loadgen.engines.kinds import llamacpp, transformers_serve, vllm
from loadgen.engines.kinds.engine import CommandEngine
from loadgen.engines.sim.tokenizer import TOKENIZER
from loadgen.testing.engine_conformance import Case
from tests.helpers.real_llamacpp import KNOBS, RAW, gguf
from tests.helpers.real_tokenizers import smollm2

NO_TOKEN = 151935  # of the vocabulary, and never generated
# A model that generates also embeds, and with random weights in its last layer it scores.
SCORES = json.dumps({"architectures": ["Qwen3ForSequenceClassification"], "num_labels": 1})
VLLM_TASKS = {
    "generate": ("--enable-prompt-tokens-details",),
    "embed": ("--runner", "pooling", "--convert", "embed"),
    "score": (
        "--runner",
        "pooling",
        "--convert",
        "classify",
        "--load-format",
        "dummy",
        "--hf-overrides",
        SCORES,
    ),
}
LLAMACPP_TASKS = {
    "generate": (),
    "embed": ("--embedding", "--pooling", "mean"),
    "score": ("--reranking",),
}
# Two threads on two busy cores wait for each other in loops.
VLLM_ON_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Real:
    """A real engine.

    Attributes:
        case: How it is started.
        tokenizer: Counts as its model does, where it has one.
        endless: Fields of a request whose answer does not end by itself.
        tasks: The engine's own flags of a server that generates, embeds or scores.
        lacks: Protocols that such servers do not have: task and name.
    """

    case: Case
    tokenizer: str
    endless: Mapping[str, object] = field(default_factory=lambda: {"ignore_eos": True})
    tasks: Mapping[str, Sequence[str]] = field(default_factory=lambda: {"generate": ()})
    lacks: frozenset[tuple[str, str]] = frozenset()


def vllm_on_cpu() -> Real:
    """vLLM's build for CPUs with the tiny Qwen3."""
    model = str(tiny_qwen3(CACHE))
    case = Case(
        engine=_inside(vllm.cpu, recipes.vllm, VLLM_ON_CPU),
        model=model,
        knobs={"context_len": 4096, "max_seqs": 16, "reasoning_parser": "qwen3"},
        raw=("--dtype", "bfloat16", "--enforce-eager"),
        ready_s=300.0,
    )
    return Real(case, tokenizer=model, tasks=VLLM_TASKS)


def llama_cpp() -> Real:
    """llama.cpp with SmolLM2, both in the environment of the tests."""
    case = Case(
        engine=llamacpp.engine,
        model=gguf(),
        knobs=KNOBS,
        raw=RAW,
        no_model="/nowhere/m.gguf",
        ready_s=200.0,
    )
    lacks = frozenset(
        ("embed", name) for name in ("openai-embeddings-chat", "vllm-pooling", "vllm-rerank")
    )
    return Real(case, tokenizer=str(smollm2(CACHE)), tasks=LLAMACPP_TASKS, lacks=lacks)


def transformers() -> Real:
    """`transformers serve` with the tiny Qwen3."""
    model = str(tiny_qwen3(CACHE))
    case = Case(
        engine=_inside(transformers_serve.engine, recipes.transformers, {"OMP_NUM_THREADS": "1"}),
        model=model,
        # Left alone it fills most of the machine's memory with cache before its first token: 20 GB
        # of 24, in a minute.
        raw=("--device", "cpu", "--cb-block-size", "32", "--cb-num-blocks", "1024"),
        ready_s=300.0,
    )
    # It refuses ignore_eos.
    endless = {"generation_config": json.dumps({"eos_token_id": NO_TOKEN})}
    lacks = frozenset(("generate", name) for name in ("openai --prompt-token-ids", "anthropic"))
    return Real(case, tokenizer=model, endless=endless, lacks=lacks)


def xpyd_sim() -> Real:
    """xpyd-sim, which has no model: it counts words."""
    case = Case(
        engine=_inside(xpyd.engine, recipes.xpyd, {}),
        model="sim",
        raw=("--prefill-delay-ms", "20", "--decode-delay-per-token-ms", "5"),
        no_model=None,
        ready_s=60.0,
    )
    lacks = frozenset(("generate", name) for name in ("openai-responses", "anthropic"))
    return Real(case, tokenizer=str(TOKENIZER), lacks=lacks)


ENGINES: dict[str, Callable[[], Real]] = {
    "vllm": vllm_on_cpu,
    "llamacpp": llama_cpp,
    "transformers": transformers,
    "xpyd-sim": xpyd_sim,
}


def _inside(engine: CommandEngine, recipe: Recipe, env: dict[str, str]) -> CommandEngine:
    """The engine whose program is in a recipe's environment."""
    programs = made(recipe)
    return replace(
        engine, head=(str(programs / engine.head[0]), *engine.head[1:]), env={**engine.env, **env}
    )
