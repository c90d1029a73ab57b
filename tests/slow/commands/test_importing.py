"""Ctrl-C during a command's imports ends the command at once, and says so."""

import subprocess
import sys

import pytest

from tests.helpers.command_line import environment

# Presses Ctrl-C as the import of a module begins, and makes of a KeyboardInterrupt there what
# compiled modules do.
INTERRUPTED = """
import signal, sys
from loadgen.cli import command

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == interrupted:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("numpy._core.multiarray failed to import") from None

_, interrupted, *words = sys.argv
sys.argv[1:] = words
sys.meta_path.insert(0, Interrupting())
command()
"""


SIMULATED = ["--engine", "sim"]


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("loadgen.cli.main", ["--version"]),
        ("loadgen.cli.commands.run", ["run", *SIMULATED]),
        ("loadgen.config.load", ["run", *SIMULATED]),
        ("loadgen.util.forked_child", ["run", *SIMULATED]),
        ("loadgen.cli.live.view", ["run", *SIMULATED]),
        ("numpy", ["run", *SIMULATED]),
        ("numpy", ["search", "--slo", "ttft_p99<1s", *SIMULATED]),
        ("numpy", ["tune", "run", "study.yaml"]),
        ("numpy", ["tune", "status", "a.store"]),
        ("numpy", ["tune", "report", "a.store"]),
        ("numpy", ["tune", "export", "a.store"]),
        ("numpy", ["import", "study.yaml", "page.md"]),
        ("loadgen.lab.verify.findings", ["verify", "run.jsonl"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_interrupt_during_an_import_ends_the_command_with_one_line(
    module: str, arguments: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "loadgen: interrupted\n")


def test_interrupt_that_the_shell_ignores_is_ignored_during_imports() -> None:
    done = subprocess.run(
        [
            "sh",
            "-c",
            'trap "" INT; exec "$@"',
            "sh",
            sys.executable,
            "-c",
            INTERRUPTED,
            "numpy",
            "tune",
            "status",
            "a",
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "a" in done.stderr
