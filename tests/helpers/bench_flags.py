"""The flags of other tools' benchmarks, read from their wheels without importing or installing
anything.

`python -m tests.helpers.bench_flags TOOL VERSION=WHEEL...` prints the content of
`tests/data/flags/TOOL.json`. In place of a wheel, the Rust client of vLLM has a file with what
`vllm-rs bench serve --help` prints.
"""

import ast
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

SOURCES = {
    "vllm": (
        "vllm/benchmarks/serve.py",
        "vllm/benchmarks/datasets.py",
        "vllm/benchmarks/datasets/datasets.py",
    ),
    "sglang": ("sglang/benchmark/serving.py", "sglang/bench_serving.py"),
    "aiperf": ("aiperf/config/flags/cli_config.py",),
    "guidellm": (
        "guidellm/__main__.py",
        "guidellm/cli/run.py",
        "guidellm/schemas/benchmark/entrypoints.py",
    ),
    "genai-perf": ("genai_perf/parser.py",),
    "evalscope": ("evalscope/perf/arguments.py",),
    "llmperf": ("token_benchmark_ray.py",),
}
RUST = "vllm-rs"
HELPED = re.compile(r"^ {2,6}(?:-[a-zA-Z], )?(--[a-z0-9-]+)", re.MULTILINE)
HOW = "pip download --no-deps; its source read with ast: python -m tests.helpers.bench_flags"
HELP = "vllm-rs bench serve --help > FILE; python -m tests.helpers.bench_flags vllm-rs VERSION=FILE"
FLAG = re.compile("--[a-z][a-z0-9-]+")
ALIAS = "argument_alias"  # by which guidellm calls the flag of a model's field


def added(tree: ast.Module) -> Iterator[str]:
    """Names that parsers are told of."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "add_argument"
        ):
            words = [
                arg.value
                for arg in node.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            ]
            names = [word for word in words if word.startswith("--")]
            yield from names
            actions = [ast.unparse(word.value) for word in node.keywords if word.arg == "action"]
            if any(action.endswith("BooleanOptionalAction") for action in actions):
                yield from (f"--no-{name[2:]}" for name in names)


def written(tree: ast.Module) -> Iterator[str]:
    """Names as strings, and as aliases of fields, of tools that declare them otherwise."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and FLAG.fullmatch(node.value)
        ):
            yield node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if (
                    isinstance(key, ast.Constant)
                    and key.value == ALIAS
                    and isinstance(value, ast.Constant)
                ):
                    yield f"--{str(value.value).replace('_', '-')}"


def flags(tool: str, wheel: str) -> list[str]:
    """Every flag of a release, in order."""
    if tool == RUST:
        return sorted({*HELPED.findall(Path(wheel).read_text())} - {"--help"})
    reader = added if tool in ("vllm", "sglang", "evalscope", "llmperf") else written
    found: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in SOURCES[tool]:
            if name in archive.namelist():
                found.update(reader(ast.parse(archive.read(name))))
    return sorted(found)


if __name__ == "__main__":
    tool, *wheels = sys.argv[1:]
    releases = {
        version: flags(tool, wheel)
        for version, _, wheel in (text.partition("=") for text in wheels)
    }
    how = HELP if tool == RUST else HOW
    print(json.dumps({"how": how, "flags": releases}, indent=1))
