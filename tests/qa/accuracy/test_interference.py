"""Interference: a machine that others use, too: stamps stay within bounds, or the run is not VALID."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from loadgen.testing.process import Process
from loadgen.util.tasks import background_tasks
from tests.qa.accuracy.judging import PLAN, judge
from tests.qa.accuracy.measuring import Run, compared

QUOTA = 0.1  # of a processor, where measuring needs more
PERIOD_US = 100_000

pytestmark = pytest.mark.accuracy


@contextlib.contextmanager
def hogs(count: int) -> Iterator[None]:
    """So many programs that each keep a processor busy."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


async def litter() -> None:
    """What a program may do that embeds loadgen: make many objects that refer to each other, and drop them."""
    kept: list[object] = []
    while True:
        for _ in range(20_000):
            pair: list[object] = []
            pair.append(pair)
            kept.append(pair)
        del kept[: len(kept) // 2]
        await asyncio.sleep(0.01)


@contextlib.contextmanager
def quota(share: float) -> Iterator[Callable[[int], None]]:
    """A control group whose processes get `share` of a processor; what it gives puts a process into it.

    Skips the test where none can be made.
    """
    v2 = Path("/sys/fs/cgroup/cgroup.controllers")
    folder = (v2.parent if v2.exists() else Path("/sys/fs/cgroup/cpu")) / f"loadgen-accuracy-{os.getpid()}"
    limit_us = int(share * PERIOD_US)
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
        yield lambda pid: (folder / "cgroup.procs").write_text(str(pid)) and None
    except OSError as error:
        pytest.skip(f"processor time cannot be limited here: {error.strerror}")
    finally:
        folder.rmdir()


async def throttle(limit: Callable[[int], None]) -> None:
    """Put the measuring process into a control group, as soon as it is there."""
    while True:
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if "loadgen.runner.worker_main" in child.cmdline():
                    limit(child.pid)
                    return
        await asyncio.sleep(0.01)


async def ask(metronome: Process, worker: bool = True) -> Run:
    """A run that an idle machine measures well."""
    return await compared(metronome, tokens=50, plan=PLAN, request_rate=200, duration=6.0, worker=worker)


async def test_a_processor_hog_on_every_core(metronome: Process, row: Callable[..., None]) -> None:
    with hogs(os.cpu_count() or 1):
        judge(row, "a busy program on every core", await ask(metronome))


async def test_a_program_that_litters(metronome: Process, row: Callable[..., None]) -> None:
    async with background_tasks(litter()):
        judge(row, "the library in a program that litters", await ask(metronome, worker=False))


async def test_a_limited_share_of_a_processor(metronome: Process, row: Callable[..., None]) -> None:
    with quota(QUOTA) as limit:
        async with background_tasks(throttle(limit)):
            run = await ask(metronome)
        judge(row, f"limited to {QUOTA:.0%} of a processor", run)
