"""Meter: what a command costs, with all the processes that it starts: `python -m bench.peers.meter
FILE COMMAND...`.

Processor time is what the kernel charged to the command and to everything that came from it: the
meter adopts whatever loses its parent, so that nothing escapes the sum. Memory is read several
times a second.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from loadgen.util import machine
from tests.helpers.source import ROOT

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
READ_EVERY_S = 0.25
REST_S = 2.0  # for processes that outlive the command
STOPPED_S = 30.0  # for a command to end that is told to
BYTES_PER_MB = 1e6


@dataclass(frozen=True, slots=True)
class Metered:
    """What one command cost.

    Attributes:
        began_ns: When it was started, CLOCK_MONOTONIC.
        wall_s: Until it ended.
        cpu_s: User and system time of all its processes.
        elsewhere_s: Processor time of everybody else on the machine meanwhile, in seconds over all
            cores.
        largest_mb: The most memory that one of its processes had resident.
        sum_mb: The most that all of them together had; pages that they share count several times.
        processes: The most that ran at once.
        code: Its exit code; negative: the signal that ended it.
        survivors: How many of its processes were still there some seconds after its end, and were
            killed.
    """

    began_ns: int
    wall_s: float
    cpu_s: float
    elsewhere_s: float
    largest_mb: float
    sum_mb: float
    processes: int
    code: int
    survivors: int


def metered(
    command: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    timeout_s: float,
    name: str = "run",
) -> tuple[Metered, str]:
    """Run a command below a meter, in `folder`; returns what it cost and all that it said.

    Raises:
        subprocess.TimeoutExpired: It has not ended in time; it was stopped.
    """
    told, said = folder / f"{name}.meter.json", folder / f"{name}.out"
    meter = [sys.executable, "-m", "bench.peers.meter", str(told), str(folder), *command]
    with (
        said.open("w") as file,
        subprocess.Popen(
            meter,
            cwd=ROOT,
            env={**env},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # some clients end by a signal to their whole group
        ) as process,
    ):
        try:
            process.wait(timeout_s)
        except BaseException:  # a user who has had enough too: nothing of it goes on
            process.terminate()
            process.wait(STOPPED_S)
            raise
    text = said.read_text(errors="replace")
    if not told.exists():
        raise RuntimeError(f"the meter failed: {text[-2000:]}")
    return Metered(**json.loads(told.read_text())), text


class Memory(threading.Thread):
    """Reads the memory of this process's descendants, in bytes, until it is told to stop; keeps
    the most.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.largest = self.sum = self.processes = 0
        self._stop_reading = threading.Event()

    def run(self) -> None:
        """Read, again and again."""
        while not self._stop_reading.wait(READ_EVERY_S):
            self.read()

    def read(self) -> None:
        """Read once."""
        sizes = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                sizes.append(process.memory_info().rss)
        self.largest = max([self.largest, *sizes])
        self.sum = max(self.sum, sum(sizes))
        self.processes = max(self.processes, len(sizes))

    def end(self) -> None:
        """Stop reading."""
        self._stop_reading.set()
        self.join()


def run(command: Sequence[str], folder: str) -> Metered:
    """Run a command to its end as the only child of this process, and put away what it leaves."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot adopt orphans")
    memory = Memory()
    memory.start()
    busy, began_ns = machine.CpuTimes.now(), time.monotonic_ns()
    signal.signal(signal.SIGTERM, lambda *_: _end_children())
    with subprocess.Popen(command, cwd=folder) as process:
        code = process.wait()
    wall_s = (time.monotonic_ns() - began_ns) / 1e9
    memory.end()
    survivors = _put_away()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime
    now = machine.CpuTimes.now()
    elsewhere_s = max(0.0, now.used_s - busy.used_s - cpu_s - (now.own_s - busy.own_s))
    return Metered(
        began_ns,
        wall_s,
        cpu_s,
        elsewhere_s,
        memory.largest / BYTES_PER_MB,
        memory.sum / BYTES_PER_MB,
        memory.processes,
        code,
        survivors,
    )


def _end_children() -> None:
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()


def _put_away() -> int:
    """Wait for adopted processes to end, and kill those that do not; returns how many these
    were.
    """
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), REST_S)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0)[0]:
            pass
    return len(alive)


if __name__ == "__main__":
    told_to, where, *rest = sys.argv[1:]
    Path(told_to).write_text(json.dumps(asdict(run(rest, where))))
