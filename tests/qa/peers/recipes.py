"""Recipes: how each peer is installed; no version moves by itself."""

import shutil
from pathlib import Path

from tests.qa.engines.environments import CACHE, Recipe
from tests.qa.engines.recipes import REQUIREMENTS, TORCH

FOLDER = CACHE.parent / "peers"

# The distribution with its benchmarks and without a server: what it needs of CUDA is never loaded.
vllm = Recipe("vllm", ((TORCH,), (*REQUIREMENTS.read_text().split(), "orjson"), ("--no-deps", "vllm==0.33.0")))


def only_the_rust_client(packages: Path) -> None:
    """Keep one program of vLLM's distribution: the Rust client, which runs without the rest."""
    programs = packages.parents[2] / "bin"
    shutil.move(packages / "vllm" / "vllm-rs", programs)
    (programs / "vllm-rs").chmod(0o755)
    shutil.rmtree(packages / "vllm")


vllm_rs = Recipe("vllm-rs", (("--no-deps", "vllm==0.33.0"),), only_the_rust_client)


def only_the_request_functions(packages: Path) -> None:
    """Keep one module of vLLM's distribution: the functions that build and send its requests, which need no torch."""
    shutil.move(packages / "vllm" / "benchmarks" / "lib" / "endpoint_request_func.py", packages)
    shutil.rmtree(packages / "vllm")


vllm_requests = Recipe(
    "vllm-requests", (("aiohttp", "regex", "tqdm"), ("--no-deps", "vllm==0.33.0")), only_the_request_functions
)
guidellm = Recipe("guidellm", ((TORCH,), ("guidellm==0.8.1",)))
aiperf = Recipe("aiperf", (("aiperf==0.13.0",),))
inference_perf = Recipe("inference-perf", (("inference-perf==0.7.0",),), python="3.12")
evalscope = Recipe("evalscope", (("evalscope[perf]==1.14.1",),))


def version(recipe: Recipe) -> str:
    """The version of the peer itself, which the last step names."""
    return recipe.steps[-1][-1].partition("==")[2]
