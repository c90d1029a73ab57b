"""The code does not evaluate text, call a shell, or unpickle data from outside."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.source import FOLDERS, modules

CALLS = {
    "eval": set(),
    "exec": set(),
    "compile": set(),
    "__import__": set(),
    "os.system": set(),
    "os.popen": set(),
    "asyncio.create_subprocess_shell": {"util.key_command"},  # the command of --api-key-command
    "tempfile.mktemp": set(),
    "yaml.load": set(),
    "yaml.unsafe_load": set(),
    "yaml.full_load": set(),
    "marshal.loads": set(),
    "pickle.load": set(),
    "pickle.loads": {"util.child_process"},
    "child_process.decode": {
        "runner.metrics_scraper_main",
        "runner.preparer",
        "runner.worker_main",
    },
}


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


@pytest.mark.parametrize("name", sorted(modules()))
def test_module_does_not_execute_its_input(name: str) -> None:
    for called, node in calls(modules()[name]):
        assert name in CALLS.get(called, {name}), f"{name}:{node.lineno} calls {called}"
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        assert given.get("shell", "False") == "False", f"{name}:{node.lineno}"
        assert given.get("allow_pickle", "False") == "False", f"{name}:{node.lineno}"


def test_the_rule_sees_what_it_forbids(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(
        "import os, subprocess\nos.system('x')\nsubprocess.run('x', shell=True)\neval('1')\n"
    )
    found = {called for called, _ in calls(path)}
    assert found >= {"os.system", "eval"}


def compiled() -> list[Path]:
    """The sources of what is compiled."""
    return [path for folder in FOLDERS.values() for path in folder.rglob("*.p[yx][xid]")]


RUNS_TEXT = re.compile(r"\b(eval|exec|system|popen)\s*\(|\bpickle\b")


@pytest.mark.parametrize("path", sorted(compiled()), ids=lambda path: path.name)
def test_compiled_module_does_not_execute_its_input(path: Path) -> None:
    assert not RUNS_TEXT.search(path.read_text())
    assert RUNS_TEXT.search("    eval(text)")
