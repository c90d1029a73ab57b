"""Threads are pinned to cores, and are woken up sooner."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.util import scheduling
from loadgen.util.scheduling import separate_cores

several = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
GONE = 2**22 + 1  # above the largest number that the kernel gives to a process


@pytest.fixture
def beside():
    """A process with a second thread, which lives until the test ends."""
    program = (
        "import sys, threading; threading.Thread(target=sys.stdin.read).start(); print(flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        yield process.pid
        process.stdin.close()


@several
def test_separate_cores_pins_and_restores_affinity(beside):
    before = os.sched_getaffinity(0)
    threads = [int(name) for name in os.listdir(f"/proc/{beside}/task")]
    assert len(threads) > 1
    with separate_cores([beside]):
        ours = os.sched_getaffinity(0)
        assert len(ours) == (len(before) + 1) // 2
        assert [os.sched_getaffinity(thread) for thread in threads] == [before - ours] * len(
            threads
        )
    assert [os.sched_getaffinity(thread) for thread in (0, *threads)] == [before] * (
        1 + len(threads)
    )


@several
@pytest.mark.parametrize("place", [min, max])
def test_the_processor_can_be_chosen(beside, place):
    own = place(os.sched_getaffinity(0))
    with separate_cores([beside], own):
        assert os.sched_getaffinity(0) == {own}
        assert own not in os.sched_getaffinity(beside)


@several
def test_affinity_is_unchanged_with_a_single_processor(beside):
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with separate_cores([beside]):
            assert os.sched_getaffinity(0) == {min(before)}
            assert os.sched_getaffinity(beside) == before
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("pids", [[], [GONE]])
def test_affinity_is_unchanged_without_a_process(pids):
    before = os.sched_getaffinity(0)
    with separate_cores(pids):
        assert os.sched_getaffinity(0) == before
    assert os.sched_getaffinity(0) == before


def niceness_after(*steps: Callable[[], None]) -> int:
    """Take steps in a thread of its own, and return the niceness that this thread then has."""
    found: list[int] = []

    def take() -> None:
        for step in steps:
            with contextlib.suppress(PermissionError):
                step()
        found.append(os.getpriority(os.PRIO_PROCESS, 0))

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return found[0]


def be_nice(niceness: int) -> Callable[[], None]:
    return lambda: os.setpriority(os.PRIO_PROCESS, 0, niceness)


def test_only_the_thread_that_asks_has_the_higher_priority_where_that_is_allowed() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    allowed = niceness_after(be_nice(scheduling.NICENESS)) == scheduling.NICENESS
    assert niceness_after(scheduling.wake_up_sooner) == (
        scheduling.NICENESS if allowed and before == 0 else before
    )
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_a_priority_that_was_chosen_stays() -> None:
    assert niceness_after(be_nice(15), scheduling.wake_up_sooner) == 15


def test_the_slice_is_short_where_the_kernel_shows_it() -> None:
    shown: list[str] = []

    def read() -> None:
        path = Path(f"/proc/self/task/{threading.get_native_id()}/sched")
        shown.extend(line for line in path.read_text().splitlines() if line.startswith("se.slice"))

    if not Path("/proc/self/sched").exists():
        pytest.skip("this kernel does not show how threads are scheduled")
    niceness_after(scheduling.wake_up_sooner, read)
    assert [int(line.split(":")[1]) for line in shown] in ([], [scheduling.SLICE_NS])


def test_where_a_higher_priority_is_not_allowed_the_thread_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    assert niceness_after(scheduling.wake_up_sooner) == os.getpriority(os.PRIO_PROCESS, 0)
