"""Calls the command line as a user does: in a process of its own."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.helpers.source import ROOT

LOADGEN = [sys.executable, "-m", "loadgen"]
TOKENIZER = str(ROOT / "engines" / "sim" / "tokenizer.json")  # the simulator's
SHORT = ["--random-input-len", "16", "--random-output-len", "4"]


def loadgen(
    *arguments: str, cwd: Path | None = None, timeout_s: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run `loadgen ARGUMENTS` to its end, in a process forked from one that has imported it."""
    from tests.helpers.warm_command import called  # `served` and `start` do without its imports

    return called(arguments, cwd, environment(), timeout_s)


def start(*arguments: str, cwd: Path | None = None) -> "subprocess.Popen[str]":
    """Start `loadgen ARGUMENTS`; stdout and stderr are pipes."""
    return subprocess.Popen(
        [*LOADGEN, *arguments],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def hear(process: "subprocess.Popen[str]", wanted: Callable[[str], bool]) -> str:
    """Read what it says on stderr up to the first line that is wanted; returns that."""
    assert process.stderr is not None
    for line in process.stderr:
        if wanted(line):
            return line
    raise AssertionError("it ended without saying so")


def ignored(pid: int) -> set[int]:
    """The signals that a process ignores."""
    mask = re.search(r"SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    assert mask is not None
    return {number for number in range(1, 65) if int(mask[1], 16) >> (number - 1) & 1}


def ended(line: str) -> int:
    """How many requests have been answered, by a line of progress; 0 in any other line."""
    found = re.search(r"(\d+) (?:of \d+ )?answered", line)
    return int(found.group(1)) if found else 0


def in_flight(line: str) -> int:
    """How many requests are in flight, by a line of progress; 0 in any other line."""
    found = re.search(r"(\d+) in flight", line)
    return int(found.group(1)) if found else 0


def environment() -> dict[str, str]:
    """The environment without what would change the meaning of a call."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("OPENAI_API_KEY", "PYTHONWARNINGS")
    }


def interrupt(run: "subprocess.Popen[str]", times: int) -> tuple[str, str]:
    """Press Ctrl-C so often, once requests are in flight; returns what it printed to the end."""
    hear(run, in_flight)
    for time in range(times):
        run.send_signal(signal.SIGINT)
        if time + 1 < times:
            hear(run, lambda line: "interrupted" in line)
    return run.communicate(timeout=30)


@contextlib.contextmanager
def served(*flags: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A simulator with these flags of its own; yields its base URL and its process."""
    command = [sys.executable, "-m", "loadgen.engines.sim", "--port", "0", *flags]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://" in line, line
        yield line.split()[-1], process
    finally:
        process.kill()
        process.communicate()
