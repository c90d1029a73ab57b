"""A thread that measures wakes up sooner; the others of its process stay as they are."""

import os
import threading

import pytest

from loadgen.util import scheduling


def niceness_after_asking() -> int:
    """Ask in a thread of its own, and return what that thread then has."""
    found: list[int] = []

    def ask() -> None:
        scheduling.wake_up_sooner()
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found[0]


def test_only_the_thread_that_asks_changes() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    assert niceness_after_asking() in (scheduling.NICENESS, before)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_where_a_higher_priority_is_not_allowed_the_thread_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    assert niceness_after_asking() == os.getpriority(os.PRIO_PROCESS, 0)
