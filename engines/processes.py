"""Processes: which ones there are, told apart by when they began, and found by the tag in their environment."""

import contextlib
import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Self

TAG = "LOADGEN_RUN_ID"
SHOWN = 120  # characters of a command line
BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Process:
    """A process: its id, which is used again, and when it began, which is not.

    Attributes:
        pid: Its id.
        began: In clock ticks after the machine's start.
        boot: Which start of the machine.
    """

    pid: int
    began: int
    boot: str

    @classmethod
    def at(cls, pid: int) -> Self | None:
        """The process that has the id now; None if there is none, or one that has ended and only waits to be reaped."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            return None if fields[0] in (b"Z", b"X") else cls(pid, int(fields[19]), BOOT.read_text().strip())
        except OSError:
            return None

    @property
    def alive(self) -> bool:
        """Whether it is there and has not ended."""
        return type(self).at(self.pid) == self

    def wait_ended(self, timeout_s: float, *, kill: bool = False) -> None:
        """Wait until it has ended, at most so long; `kill`: send it SIGKILL first."""
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)  # names this process, even should it end now
            try:
                if self.alive:
                    if kill:
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    poll = select.poll()
                    poll.register(descriptor, select.POLLIN)
                    poll.poll(max(0.0, timeout_s) * 1000)
            finally:
                os.close(descriptor)

    def __str__(self) -> str:
        return f"{self.pid} ({command(self.pid)})"


def command(pid: int) -> str:
    """Its command line, cut short; what can be told of it where that is none of ours."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return (words or Path(f"/proc/{pid}/comm").read_text().strip())[:SHOWN]
    except OSError:
        return "gone"


def descendants(pid: int) -> list[int]:
    """Ids of what a process has started, and of what those have, and so on."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found[1:]


def tagged(run_id: str) -> list[Process]:
    """The processes with `LOADGEN_RUN_ID=run_id` in their environment, this one aside.

    A program that writes its own title over its environment cannot be found so.
    """
    wanted = f"{TAG}={run_id}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            variables = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        process = Process.at(int(name)) if wanted in variables else None
        if process is not None:
            found.append(process)
    return found
