"""The flags that an engine's command line knows, read from its wheel without importing or
installing anything.

`python -m tests.helpers.wheel_flags ENGINE VERSION=WHEEL...` prints the content of
`tests/data/engines/ENGINE.json`.
"""

import ast
import json
import sys
import zipfile
from collections.abc import Callable, Iterator

# Where each engine declares its flags; a folder stands for all that is in it. Releases differ: what
# is there is read.
SOURCES = {
    "vllm": (
        "vllm/engine/arg_utils.py",
        "vllm/entrypoints/openai/cli_args.py",
        "vllm/entrypoints/launchers/cli_args.py",
    ),
    "sglang": ("sglang/srt/server_args.py", "sglang/srt/arg_groups/fields/"),
    "transformers": ("transformers/cli/serve.py",),
}
HOW = "pip download --no-deps; its source read with ast: python -m tests.helpers.wheel_flags"


def _strings(nodes: list[ast.expr]) -> list[str]:
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def _added(tree: ast.Module) -> Iterator[list[str]]:
    """The names of each flag that the source adds to a parser."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "add_argument"
        ):
            names = [name for name in _strings(node.args) if name.startswith("-")]
            if names:
                yield names


def _fields(tree: ast.Module, classes: Callable[[str], bool]) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and classes(node.name):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield field.target.id, field.annotation


def _flag(field: str) -> str:
    return "--" + field.replace("_", "-")


def vllm(tree: ast.Module) -> Iterator[list[str]]:
    """Flags added by name, and those of the front end, which are the fields of a class; a bool
    has a --no- form.
    """
    yield from _added(tree)
    for name, annotation in _fields(tree, lambda name: name in ("EngineArgs", "AsyncEngineArgs")):
        if "bool" in ast.unparse(annotation):
            yield ["--no-" + name.replace("_", "-")]
    for name, annotation in _fields(tree, lambda name: name.endswith("FrontendArgs")):
        yield [_flag(name)]
        if "bool" in ast.unparse(annotation):
            yield ["--no-" + name.replace("_", "-")]


def sglang(tree: ast.Module) -> Iterator[list[str]]:
    """Flags added by name, and since 0.5.10 or so those that annotations of fields declare."""
    yield from _added(tree)
    for name, annotation in _fields(tree, lambda _: True):
        if not (isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "A"):
            continue
        names = [_flag(name)]
        for call in (node for node in ast.walk(annotation) if isinstance(node, ast.Call)):
            given = {word.arg: word.value for word in call.keywords}
            if "no_cli" in given:
                names = []
            elif "cli_name" in given:
                names = _strings([given["cli_name"]])
            if names and isinstance(aliases := given.get("aliases"), ast.List):
                names += _strings(aliases.elts)
        if names:
            yield names


def transformers(tree: ast.Module) -> Iterator[list[str]]:
    """The parameters of the command's constructor; a bool has a --no- form."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "Serve":
            (made,) = (
                item
                for item in node.body
                if isinstance(item, ast.FunctionDef) and item.name == "__init__"
            )
            for argument in made.args.args[2:]:  # behind self and the model
                yield [_flag(argument.arg)]
                if "bool" in ast.unparse(argument.annotation or ast.Constant("")):
                    yield ["--no-" + argument.arg.replace("_", "-")]


def flags(engine: str, wheel: str) -> list[str]:
    """Each flag of the wheel's engine, its names separated by `=`, in order."""
    found = set()
    with zipfile.ZipFile(wheel) as archive:
        for path in archive.namelist():
            if path.endswith(".py") and path.startswith(SOURCES[engine]):
                found |= {
                    "=".join(names) for names in globals()[engine](ast.parse(archive.read(path)))
                }
    return sorted(found)


if __name__ == "__main__":
    engine, *wheels = sys.argv[1:]
    versions = {
        version: " ".join(flags(engine, wheel))
        for version, wheel in (word.split("=", 1) for word in wheels)
    }
    print(json.dumps({"how": HOW, "versions": versions}, indent=1))
