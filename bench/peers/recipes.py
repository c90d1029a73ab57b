"""Recipes: how each peer is installed; no version moves by itself."""

import shutil
import tempfile
from pathlib import Path

from bench.engines.environments import CACHE, Recipe
from bench.engines.recipes import REQUIREMENTS, TORCH

FOLDER = CACHE.parent / "peers"

# The distribution with its benchmarks and without a server: what it needs of CUDA is never loaded.
vllm = Recipe(
    "vllm", ((TORCH,), (*REQUIREMENTS.read_text().split(), "orjson"), ("--no-deps", "vllm==0.33.0"))
)


def only_the_rust_client(packages: Path) -> None:
    """Keep one program of vLLM's distribution: the Rust client, which runs without the rest."""
    programs = packages.parents[2] / "bin"
    shutil.move(packages / "vllm" / "vllm-rs", programs)
    (programs / "vllm-rs").chmod(0o755)
    shutil.rmtree(packages / "vllm")


vllm_rs = Recipe("vllm-rs", (("--no-deps", "vllm==0.33.0"),), only_the_rust_client)


def only_the_request_functions(packages: Path) -> None:
    """Keep one module of vLLM's distribution: the functions that build and send its requests,
    which need no torch.
    """
    shutil.move(packages / "vllm" / "benchmarks" / "lib" / "endpoint_request_func.py", packages)
    shutil.rmtree(packages / "vllm")


vllm_requests = Recipe(
    "vllm-requests",
    (("aiohttp", "regex", "tqdm"), ("--no-deps", "vllm==0.33.0")),
    only_the_request_functions,
)


def only_the_benchmark(packages: Path) -> None:
    """Keep the benchmark of SGLang's distribution, and of its server the two modules that the
    benchmark reads.

    The other modules need torch and CUDA. Of the module about disaggregation only the address is
    kept that the benchmark imports.
    """
    whole = packages / "sglang"
    kept = ("bench_serving.py", "benchmark", "version.py", "srt/utils/network.py")
    utils = (whole / "srt/disaggregation/utils.py").read_text()
    address = next(line for line in utils.splitlines() if line.startswith("FAKE_BOOTSTRAP_HOST ="))
    with tempfile.TemporaryDirectory(dir=packages) as name:
        for part in kept:
            (Path(name) / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(whole / part, Path(name) / part)
        shutil.rmtree(whole)
        shutil.copytree(name, whole)
    (whole / "srt/disaggregation").mkdir()
    (whole / "srt/disaggregation/utils.py").write_text(f"{address}\n")


sglang = Recipe(
    "sglang",
    (
        (
            "aiohttp",
            "msgspec",
            "numpy",
            "orjson",
            "pillow",
            "psutil",
            "pybase64",
            "pyzmq",
            "requests",
            "tqdm",
        ),
        ("datasets", "jinja2", "transformers"),
        ("--no-deps", "sglang==0.5.23"),
    ),
    only_the_benchmark,
)
guidellm = Recipe("guidellm", ((TORCH,), ("guidellm==0.8.1",)))
aiperf = Recipe("aiperf", (("aiperf==0.13.0",),))
inference_perf = Recipe("inference-perf", (("inference-perf==0.7.0",),), python="3.12")
# The reader of AIPerf's files alone: it needs nothing else of its packages.
kneebench = Recipe("kneebench", (("pyyaml",), ("--no-deps", "kneebench==0.1.0a1")))
# llm-d's benchmark report, which makes one of the files of other tools.
llm_d = Recipe("llm-d", (("llmd-benchmark-report==0.2.1",),))
genai_bench = Recipe("genai-bench", (("genai-bench==0.0.5",),))
evalscope = Recipe("evalscope", (("evalscope[perf]==1.14.1",),))


def version(recipe: Recipe) -> str:
    """The version of the peer itself, which the last step names."""
    return recipe.steps[-1][-1].partition("==")[2]
