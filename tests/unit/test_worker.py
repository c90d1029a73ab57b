"""Worker: what it tells while it measures."""

import contextlib
import os
import select
import sys
from collections.abc import Iterator

import pytest

from loadgen import messages
from loadgen.measurement import Progress
from loadgen.worker import tell_if_heard

LARGEST = Progress("warming up", *[1e9 + 0.1] + [10**12] * 5)


@contextlib.contextmanager
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Both ends of what this process says: where it is read, and where it is written."""
    read, write = os.pipe()
    said = os.fdopen(write, "w")
    try:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", said)
            yield read, write
    finally:
        os.close(read)
        with contextlib.suppress(BrokenPipeError):  # what could not be said
            said.close()


def fill(write: int) -> None:
    """Say so much that nothing more fits, as to a command that has been stopped."""
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"x" * select.PIPE_BUF)
    os.set_blocking(write, True)


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with heard(monkeypatch) as (read, _):
        tell_if_heard(LARGEST)
        assert messages.decode(os.read(read, select.PIPE_BUF)) == LARGEST


@pytest.mark.timeout(10)
def test_progress_that_nobody_reads_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with heard(monkeypatch) as (read, write):
        fill(write)
        tell_if_heard(LARGEST)
        assert set(os.read(read, 1 << 20)) == {ord("x")}


def test_progress_is_taken_as_a_whole_or_not_at_all() -> None:
    assert len(messages.encode(LARGEST)) <= select.PIPE_BUF


def test_once_nobody_can_read_any_more_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with heard(monkeypatch) as (read, _):
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, read)
        os.close(nowhere)
        tell_if_heard(LARGEST)
