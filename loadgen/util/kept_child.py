"""Kept children: interpreters that wait for another order of their kind, instead of ending after the first.

To start an interpreter and to import what it needs takes most of the time of a short run. So a process that makes many
runs keeps one child of each kind. A child is used again only where a new one would be the same: in the process that
started it, with the same environment and current folder.
"""

import atexit
import contextlib
import os
import select
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

Interpreter = subprocess.Popen[bytes]
_kept: dict[str, "tuple[Interpreter, Circumstances]"] = {}  # by module


class Circumstances(NamedTuple):
    """What a child takes over from the process that starts it."""

    pid: int
    folder: str
    environment: dict[str, str]

    @classmethod
    def now(cls) -> "Circumstances":
        """Return those of a child that would be started now."""
        try:
            folder = os.getcwd()
        except OSError:  # it was removed
            folder = ""
        return cls(os.getpid(), folder, dict(os.environ))


def take(module: str) -> Interpreter | None:
    """Return the kept child that runs a module, once; None where there is none that would be as a new one."""
    if module not in _kept:
        return None
    process, circumstances = _kept.pop(module)
    if circumstances.pid != os.getpid():  # a fork: the child belongs to the other process
        return None
    if process.poll() is None and circumstances == Circumstances.now():
        return process
    end(process)
    return None


def keep(module: str, process: Interpreter, circumstances: Circumstances) -> None:
    """Keep a child that waits for an order, in place of an earlier one."""
    if (earlier := take(module)) is not None:
        end(earlier)
    _kept[module] = process, circumstances


def end(process: Interpreter) -> None:
    """Kill a child with SIGKILL, unless it has ended, and close its pipes."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.kill()
    process.wait()


@atexit.register
def end_all() -> None:
    """End the children that are kept by this process."""
    while _kept:
        _, (process, circumstances) = _kept.popitem()
        if circumstances.pid == os.getpid():
            end(process)


def lines() -> Iterator[bytes]:
    """Yield the lines of standard input, on the child's side, as long as its parent lives.

    The end of the pipe alone does not show that: a process that the parent has forked holds it open, too.
    """
    stdin = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115 - unbuffered, as what follows an order is read elsewhere
    ends = [stdin.fileno()]
    with contextlib.suppress(OSError, AttributeError):  # only Linux has it; there may be no parent any more
        ends.append(os.pidfd_open(os.getppid()))
    while select.select(ends, (), ())[0] == ends[:1]:
        os.set_blocking(0, True)  # an event loop has set it otherwise
        if not (line := stdin.readline()):
            return
        yield line
