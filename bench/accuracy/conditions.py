"""Conditions: what disturbs a measuring process.

Each is a context that is entered with the id of that process.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from loadgen.util.tasks import background_tasks

Condition = Callable[[int], AbstractAsyncContextManager[None]]

CORES = os.sched_getaffinity(0)  # before any test pins this process
PERIOD_US = 100_000  # of a CPU quota
STOP_S, EVERY_S = 0.05, 0.3


@contextlib.asynccontextmanager
async def alone(pid: int) -> AsyncIterator[None]:
    """Nothing else runs."""
    yield


@contextlib.asynccontextmanager
async def beside_a_hog(pid: int) -> AsyncIterator[None]:
    """Another program keeps one core busy, whichever the kernel gives it."""
    with hogs(1):
        yield


@contextlib.asynccontextmanager
async def beside_hogs(pid: int) -> AsyncIterator[None]:
    """For each core there is a program that would keep it busy."""
    with hogs(len(CORES)):
        yield


def limited(share: float, neighbours: int = 0) -> Condition:
    """Return a condition: the process gets `share` of a core, together with so many programs
    that never sleep.
    """

    @contextlib.asynccontextmanager
    async def condition(pid: int) -> AsyncIterator[None]:
        with hogs(neighbours) as others, quota(share, [pid, *others]):
            yield

    return condition


@contextlib.asynccontextmanager
async def stopped(pid: int) -> AsyncIterator[None]:
    """The process is stopped for 50 ms, again and again."""

    async def stop() -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            try:
                while True:
                    await asyncio.sleep(EVERY_S)
                    os.kill(pid, signal.SIGSTOP)
                    await asyncio.sleep(STOP_S)
                    os.kill(pid, signal.SIGCONT)
            finally:
                os.kill(pid, signal.SIGCONT)

    async with background_tasks(stop()):
        yield


@contextlib.contextmanager
def hogs(count: int) -> Iterator[list[int]]:
    """Run this many programs that never sleep; gives their process ids."""
    running = [
        subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(count)
    ]
    try:
        for each in running:
            os.sched_setaffinity(each.pid, CORES)
        yield [each.pid for each in running]
    finally:
        for each in running:
            each.kill()
            each.wait()


@contextlib.contextmanager
def quota(share: float, pids: list[int]) -> Iterator[None]:
    """Let processes have `share` of a core together; skips the test where no control group can
    do that.
    """
    v2 = Path("/sys/fs/cgroup/cgroup.controllers")
    root = v2.parent if v2.exists() else Path("/sys/fs/cgroup/cpu")
    folder, limit_us = root / f"loadgen-accuracy-{os.getpid()}", int(share * PERIOD_US)
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error.strerror}")
    try:
        if v2.exists():
            (folder / "cpu.max").write_text(f"{limit_us} {PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(limit_us))
        _move(pids, folder)
    except OSError as error:
        folder.rmdir()
        pytest.skip(f"processor time cannot be limited here: {error.strerror}")
    try:
        yield
    finally:
        _move(pids, root)
        folder.rmdir()


def _move(pids: list[int], group: Path) -> None:
    """Put processes into a control group, except those that have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))
