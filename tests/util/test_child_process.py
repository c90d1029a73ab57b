"""Child processes: exit codes, copies of stderr, and messages through pipes."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import uvloop

from loadgen.util import machine
from loadgen.util.child_process import (
    ChildProcess,
    InputLines,
    LoopPipe,
    PipeWriter,
    decode,
    encode,
)


@pytest.fixture
def _reaped_by_the_loop() -> Iterator[None]:
    """Children are reaped by the loop, when it comes round to it; before 3.12 a thread may do so
    at any time.
    """
    if sys.version_info >= (3, 12):
        yield
        return
    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    yield
    asyncio.set_child_watcher(None)


def _script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.integration
@pytest.mark.usefixtures("_reaped_by_the_loop")
async def test_exit_code_of_a_child_that_ended_unnoticed(caplog: pytest.LogCaptureFixture) -> None:
    async with ChildProcess("this") as child:
        os.waitid(os.P_PID, child._process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop must not be told
    assert await child.wait_ended() == "ended with code 0"
    assert not caplog.records


@pytest.mark.integration
async def test_message_cut_off_by_a_kill_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, cut = encode("whole"), encode("x" * 1000)[:-700]
    (tmp_path / "cut").write_bytes(whole + cut)
    monkeypatch.setattr(
        sys, "executable", _script(tmp_path / "python", f"cat {tmp_path / 'cut'}; kill -9 $$")
    )
    async with ChildProcess("this") as child:
        assert [message async for message in child.messages()] == ["whole"]
        assert await child.wait_ended() == "was killed by signal 9"


@pytest.mark.integration
async def test_running_child_is_killed_at_the_end() -> None:
    async with ChildProcess("loadgen.runner.worker_main") as child:
        pass  # it waits for a job
    assert await child.wait_ended() == "was killed by signal 9"


@pytest.mark.integration
async def test_stderr_of_a_child_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "executable", _script(tmp_path / "python", r"printf 'one\ntwo\nunfinish\377' >&2")
    )
    async with ChildProcess("this") as child:
        await child.wait_ended()
    assert capsys.readouterr().err == "one\ntwo\nunfinish\\xff"


@pytest.mark.integration
async def test_stderr_kept_open_by_a_grandchild_is_not_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "executable", _script(tmp_path / "python", "sleep 60 & echo $! > $0.pid")
    )
    monkeypatch.setattr("loadgen.util.child_process.STDERR_TIMEOUT_S", 0.01)
    async with ChildProcess("this") as child:
        assert await child.wait_ended() == "ended with code 0"
    grandchild = int((tmp_path / "python.pid").read_text())
    assert machine.is_running(grandchild)
    os.kill(grandchild, signal.SIGKILL)


LONG = "x" * (1 << 18)  # four times what a pipe holds


@contextlib.contextmanager
def open_pipe() -> Iterator[tuple[PipeWriter, int]]:
    """A writer, and the pipe to read from."""
    reading, writing = os.pipe()
    try:
        yield PipeWriter(writing), reading
    finally:
        os.close(reading)
        os.close(writing)


def read_all(pipe: int) -> list[object]:
    """Decode all complete lines; an incomplete one comes last, as bytes."""
    os.set_blocking(pipe, False)
    data = b""
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(pipe, 1 << 20):
            data += piece
    *lines, rest = data.split(b"\n")
    return [*map(decode, lines), *([rest] if rest else [])]


def test_messages_arrive_in_order() -> None:
    with open_pipe() as (writer, pipe):
        writer.try_send({"a": 1})
        writer.send(("b", 2))
        assert read_all(pipe) == [{"a": 1}, ("b", 2)]


@pytest.mark.integration
@pytest.mark.timeout(10)
def test_try_send_never_waits_for_a_reader() -> None:
    with open_pipe() as (writer, pipe):
        for number in range(100_000):
            writer.try_send(number)
        received = read_all(pipe)
        assert received == list(range(len(received)))
        writer.try_send("later")
        # The one that it had begun with, and no other between.
        assert read_all(pipe) == [len(received), "later"]


@pytest.mark.timeout(10)
def test_try_send_finishes_a_message_before_the_next() -> None:
    with open_pipe() as (writer, pipe):
        writer.try_send(LONG)
        writer.try_send("not now")
        received = b""
        while not received.endswith(b"\n"):
            received += os.read(pipe, 1 << 20)
            writer.try_send("then")
        first, *others = map(decode, received.splitlines())
        assert first == LONG
        assert set(others) <= {"then"}


def test_send_waits_until_the_pipe_has_room() -> None:
    with open_pipe() as (writer, pipe), ThreadPoolExecutor(1) as thread:
        writer.try_send("a")
        sending = thread.submit(writer.send, LONG)
        received = b""
        while received.count(b"\n") < 2:
            received += os.read(pipe, 1 << 20)
        sending.result(10)
        assert [decode(line) for line in received.splitlines()] == ["a", LONG]
        assert os.get_blocking(writer._pipe)


def test_try_send_does_not_wait_for_a_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = PipeWriter(ours.fileno())
        writer.try_send(LONG * 10)
        assert len(theirs.recv(1 << 24)) < len(LONG) * 10


def test_messages_to_a_closed_pipe_are_dropped() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    writer = PipeWriter(writing)
    writer.send("a")
    writer.try_send("b")
    os.close(writing)


def test_lines_of_input_keep_what_was_read_beyond_them(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "wb", 0) as writer:
        monkeypatch.setattr(sys, "stdin", stdin)
        lines = InputLines()
        writer.write(b"order\nfirst\nla")
        assert next(iter(lines)) == b"order"
        assert lines.rest == b"first\nla"
        writer.write(b"st\ncut off")
        writer.close()
        assert list(lines) == [b"first", b"last"]


# -- pipes of event loops


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_the_loop_closes_the_copy_alone(run) -> None:
    async def read() -> tuple[bytes, int]:
        commands, copy = asyncio.StreamReader(), LoopPipe(end)
        protocol = asyncio.StreamReaderProtocol(commands)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, copy)
        data = await commands.read(1)
        transport.close()
        await asyncio.sleep(0.01)
        return data, copy.fileno()

    end, far = os.pipe()
    os.write(far, b"x")
    data, fd = run(read())
    assert (data, is_open(end), is_open(fd)) == (b"x", True, False)
    os.close(end)
    os.close(far)


def test_a_file_that_got_the_number_meanwhile_stays_open() -> None:
    async def close_twice() -> None:
        pipe = LoopPipe(end)
        os.close(pipe.fileno())  # as libuv does
        other = os.open(os.devnull, os.O_RDONLY)
        assert other == pipe.fileno()
        pipe.close()
        assert is_open(other)
        os.close(other)

    end, far = os.pipe()
    uvloop.run(close_twice())
    os.close(end)
    os.close(far)
