"""Worker: what it hears and tells while it measures."""

import asyncio
import contextlib
import os
import select
import sys
from collections.abc import Iterator

import pytest

from loadgen import messages
from loadgen.measurement import Progress
from loadgen.worker import GONE, obey, tell_if_heard

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


class Measurement:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def stop(self, reason: str) -> None:
        self.told.append(("stop", reason))

    def abort(self, reason: str) -> None:
        self.told.append(("abort", reason))


async def hearing(*said: tuple[object, ...]) -> tuple[list[tuple[str, str]], list[object]]:
    """What a measurement is told and which steps it is to take, of what the command says before it goes."""
    commands, steps, measurement = asyncio.StreamReader(), asyncio.Queue[object](), Measurement()
    for message in said:
        commands.feed_data(messages.encode(message))
    commands.feed_eof()
    await obey(measurement, commands, steps)  # type: ignore[arg-type]
    return measurement.told, [steps.get_nowait() for _ in range(steps.qsize())]


async def test_steps_come_in_their_order_and_the_last_is_none() -> None:
    told, steps = await hearing(("check_ready",), ("carry_out", 7))
    assert steps == [("check_ready",), ("carry_out", 7), None]
    assert told == [("abort", GONE)]


async def test_a_reason_may_be_of_several_lines() -> None:
    told, steps = await hearing(("stop", "a\nb"), ("abort", "c"))
    assert told == [("stop", "a\nb"), ("abort", "c"), ("abort", GONE)]
    assert steps == [None]


async def test_a_step_that_there_is_not_is_no_step() -> None:
    with pytest.raises(ValueError, match="close"):
        await hearing(("close",))


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
