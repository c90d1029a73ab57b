"""The flags of other tools' benchmarks, read from their wheels without importing or installing anything.

`python -m tests.commands.bench_flags TOOL VERSION=WHEEL...` prints the content of `tests/data/flags/TOOL.json`.
"""

import ast
import json
import re
import sys
import zipfile

SOURCES = {
    "vllm": ("vllm/benchmarks/serve.py", "vllm/benchmarks/datasets.py", "vllm/benchmarks/datasets/datasets.py"),
    "sglang": ("sglang/benchmark/serving.py", "sglang/bench_serving.py"),
    "aiperf": ("aiperf/config/flags/cli_config.py",),
    "guidellm": ("guidellm/__main__.py",),
}
HOW = "pip download --no-deps; its source read with ast: python -m tests.commands.bench_flags"
OPTIONS = ("default", "choices", "action", "nargs")
FLAG = re.compile("--[a-z][a-z0-9-]+")


def added(tree: ast.Module) -> dict[str, dict[str, str]]:
    """What parsers are told of each flag, as source."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            told = {word.arg: ast.unparse(word.value) for word in node.keywords if word.arg in OPTIONS}
            found |= {name: told for name in words if name.startswith("--")}
            if told.get("action", "").endswith("BooleanOptionalAction"):
                found |= {f"--no-{name[2:]}": told for name in words if name.startswith("--")}
    return found


def written(tree: ast.Module) -> dict[str, dict[str, str]]:
    """Names of flags as strings, of tools that declare them otherwise."""
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {text: {} for text in strings if FLAG.fullmatch(text)}


def flags(tool: str, wheel: str) -> dict[str, dict[str, str]]:
    """Every flag of a release."""
    reader = added if tool in ("vllm", "sglang") else written
    found: dict[str, dict[str, str]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in SOURCES[tool]:
            if name in archive.namelist():
                found |= reader(ast.parse(archive.read(name)))
    return dict(sorted(found.items()))


if __name__ == "__main__":
    tool, *wheels = sys.argv[1:]
    releases = {version: flags(tool, wheel) for version, _, wheel in (text.partition("=") for text in wheels)}
    print(json.dumps({"how": HOW, "flags": releases}, indent=1))
