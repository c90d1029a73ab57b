"""A thread that measures wakes up sooner; the others of its process stay as they are."""

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.util import scheduling


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
    assert niceness_after(scheduling.wake_up_sooner) == (scheduling.NICENESS if allowed and before == 0 else before)
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


def test_where_a_higher_priority_is_not_allowed_the_thread_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    assert niceness_after(scheduling.wake_up_sooner) == os.getpriority(os.PRIO_PROCESS, 0)
