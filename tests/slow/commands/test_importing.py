"""Ctrl-C during a command's imports ends the command."""

import subprocess
import sys

import pytest

from tests.helpers.command_line import environment

# What NumPy's compiled modules make of a KeyboardInterrupt, at one that comes as its import begins.
INTERRUPTED = """
import signal, sys
from loadgen.cli.main import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("numpy._core.multiarray failed to import") from None

sys.meta_path.insert(0, Interrupting())
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["tune", "run", "study.yaml"],
        ["tune", "status", "a.store"],
        ["tune", "report", "a.store"],
        ["tune", "export", "a.store"],
        ["import", "study.yaml", "page.md"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_interrupt_during_the_numpy_import_ends_the_command(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"loadgen {arguments[0]}: interrupted\n")
