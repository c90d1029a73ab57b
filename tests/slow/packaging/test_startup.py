"""Start-up time: heavy modules are imported only when needed."""

import json
import subprocess
import sys

import pytest

from loadgen.cli import command_list
from tests.helpers.command_line import environment
from tests.helpers.source import lazy_packages

HEAVY = {*lazy_packages(), "asyncio", "multiprocessing", "numpy", "ssl", "sqlite3"}
COMMAND = """
import contextlib, io
from loadgen.cli.main import dispatch
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    dispatch({words})
"""
TELL = (
    "\nimport json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in "
    "sys.modules})))"
)


def imported(code: str) -> set[str]:
    """The packages that are there after some code."""
    done = subprocess.run(
        [sys.executable, "-c", code + TELL],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(json.loads(done.stdout))


def test_package_import_loads_no_heavy_module() -> None:
    assert not imported("import loadgen") & HEAVY


HELP = [
    ["--help"],
    ["--version"],
    ["help", "run"],
    *([name, "--help"] for name in command_list.names()),
]


@pytest.mark.parametrize("words", HELP, ids=" ".join)
def test_help_loads_no_heavy_module(words: list[str]) -> None:
    assert not imported(COMMAND.format(words=words)) & HEAVY


def test_heavy_imports_are_detected() -> None:
    assert {"numpy", "asyncio"} <= imported("import loadgen; loadgen.run") & HEAVY
