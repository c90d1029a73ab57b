"""Processes: identifying a process by id and start time, and finding descendants and tagged
processes in /proc.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from msgspec import Struct

from loadgen.util.machine import process_cpu_s

TAG = "LOADGEN_RUN_ID"
MAX_COMMAND_CHARS = 120
BOOT = Path("/proc/sys/kernel/random/boot_id")


class Process(Struct, frozen=True):
    """A process, identified by its id, which the system reuses, and its start time.

    Attributes:
        pid: The process id.
        began: Start time, in clock ticks after the boot.
        boot: Id of the boot.
    """

    pid: int
    began: int
    boot: str

    @classmethod
    def at(cls, pid: int) -> Self | None:
        """Return the process with an id; None if there is none, or if it has ended and is not
        yet reaped.
        """
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            return (
                None
                if fields[0] in (b"Z", b"X")
                else cls(pid, int(fields[19]), BOOT.read_text().strip())
            )
        except OSError:
            return None

    @property
    def alive(self) -> bool:
        """Whether the process exists and has not ended."""
        return type(self).at(self.pid) == self

    def wait_ended(self, timeout_s: float, *, kill: bool = False) -> None:
        """Wait until the process has ended, at most `timeout_s`; with `kill`, send SIGKILL
        first.
        """
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)  # names this process, even if it ends now
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
    """Return the command line of a process, at most 120 characters; its name if that is hidden;
    "gone" if it ended.
    """
    try:
        words = (
            Path(f"/proc/{pid}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode(errors="replace")
            .strip()
        )
        return (words or Path(f"/proc/{pid}/comm").read_text().strip())[:MAX_COMMAND_CHARS]
    except OSError:
        return "gone"


def process_ids() -> list[int]:
    """Return the ids of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process."""
    return [member for member in family([pid]) if member != pid]


def family(pids: Iterable[int]) -> set[int]:
    """Return the ids of processes and of all their descendants."""
    children: dict[int, list[int]] = {}
    for process_id in process_ids():
        with contextlib.suppress(OSError):  # it has ended
            fields = Path(f"/proc/{process_id}/stat").read_bytes().rpartition(b")")[2].split()
            children.setdefault(int(fields[1]), []).append(process_id)
    members = [*pids]
    for parent in members:
        members += children.get(parent, [])
    return set(members)


def family_cpu_s(pids: Iterable[int]) -> float:
    """Return the CPU time of processes and of their children that have ended, seconds.

    Of this process only its children count: `CpuTimes` has its own time.

    Args:
        pids: Of a `family`.
    """
    own = os.getpid()
    return sum(
        sum(os.times()[2:4]) if pid == own else process_cpu_s(pid, waited=True) for pid in pids
    )


def tagged(run_id: str) -> list[Process]:
    """Return the processes with `LOADGEN_RUN_ID=run_id` in their environment, without this one.

    A program that overwrites its environment with its title is not found.
    """
    tag = f"{TAG}={run_id}".encode()
    tagged_processes = []
    for pid in process_ids():
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            has_tag = pid != os.getpid() and tag in Path(f"/proc/{pid}/environ").read_bytes().split(
                b"\0"
            )
            if has_tag and (process := Process.at(pid)) is not None:
                tagged_processes.append(process)
    return tagged_processes
