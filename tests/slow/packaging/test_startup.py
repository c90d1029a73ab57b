"""What a user waits for at every command: nothing heavy is imported before it is needed."""

import json
import subprocess
import sys

import pytest

from loadgen.cli.main import OWN, _plugin_commands
from tests.helpers.command_line import environment
from tests.helpers.source import lazy_packages

HEAVY = {*lazy_packages(), "asyncio", "multiprocessing", "numpy", "ssl", "sqlite3"}
COMMAND = """
import contextlib, io
from loadgen.cli.main import dispatch
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    dispatch({words})
"""
TELL = "\nimport json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"


def imported(code: str) -> set[str]:
    """The packages that are there after some code."""
    done = subprocess.run(
        [sys.executable, "-c", code + TELL], env=environment(), capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout))


def test_an_import_of_the_package_brings_nothing_heavy() -> None:
    assert not imported("import loadgen") & HEAVY


COMMANDS = [*OWN, *_plugin_commands()]


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_a_help_brings_nothing_heavy(words: list[str]) -> None:
    assert not imported(COMMAND.format(words=words)) & HEAVY


def test_what_is_heavy_would_be_seen() -> None:
    assert {"numpy", "asyncio"} <= imported("import loadgen; loadgen.run") & HEAVY
