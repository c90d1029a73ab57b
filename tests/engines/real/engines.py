"""The real engines that run on a machine without an accelerator, each in an environment of its own, ready to be tried."""

from collections.abc import Callable
from dataclasses import replace

from loadgen.engines import llamacpp, transformers, vllm
from loadgen.engines.command import Command
from loadgen.testing.engine_conformance import Case
from tests.engines.real import recipes, xpyd
from tests.engines.real.environments import Recipe, cache_folder, made
from tests.engines.real.tiny_qwen3 import tiny_qwen3
from tests.engines.real_llamacpp import KNOBS, RAW, gguf

# Two threads on two busy cores wait for each other in loops.
VLLM_ON_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}


def of_vllm() -> Case:
    """vLLM's build for CPUs with the tiny Qwen3."""
    return Case(
        engine=_inside(vllm.cpu, recipes.vllm, VLLM_ON_CPU),
        model=str(tiny_qwen3(cache_folder())),
        knobs={"context_len": 4096, "max_seqs": 16, "reasoning_parser": "qwen3"},
        raw=("--dtype", "bfloat16", "--enforce-eager"),
        ready_s=300.0,
    )


def of_llamacpp() -> Case:
    """llama.cpp with SmolLM2, both in the environment of the tests."""
    return Case(engine=llamacpp.engine, model=gguf(), knobs=KNOBS, raw=RAW, no_model="/nowhere/m.gguf", ready_s=200.0)


def of_transformers() -> Case:
    """`transformers serve` with the tiny Qwen3."""
    return Case(
        engine=_inside(transformers.engine, recipes.transformers, {"OMP_NUM_THREADS": "1"}),
        model=str(tiny_qwen3(cache_folder())),
        raw=("--device", "cpu"),
        ready_s=300.0,
    )


def of_xpyd() -> Case:
    """xpyd-sim, which has no model."""
    return Case(
        engine=_inside(xpyd.engine, recipes.xpyd, {}),
        model="sim",
        raw=("--prefill-delay-ms", "20", "--decode-delay-per-token-ms", "5"),
        no_model=None,
        ready_s=60.0,
    )


CASES: dict[str, Callable[[], Case]] = {
    "vllm": of_vllm,
    "llamacpp": of_llamacpp,
    "transformers": of_transformers,
    "xpyd-sim": of_xpyd,
}


def _inside(engine: Command, recipe: Recipe, env: dict[str, str]) -> Command:
    """The engine whose program is in a recipe's environment."""
    programs = made(recipe)
    return replace(engine, head=(str(programs / engine.head[0]), *engine.head[1:]), env={**engine.env, **env})
