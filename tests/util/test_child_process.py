"""A process of ours leaves nothing behind, however it ends."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.util import messages
from loadgen.util.child_process import Child


@pytest.fixture
def _told_by_the_loop() -> Iterator[None]:
    """Children are reaped by the loop, when it comes round to it; before 3.12 a thread may do so at any time."""
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


@pytest.mark.usefixtures("_told_by_the_loop")
async def test_one_that_has_ended_unnoticed_keeps_its_exit_code(caplog: pytest.LogCaptureFixture) -> None:
    async with Child("this") as child:
        os.waitid(os.P_PID, child._process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop must not be told
    assert await child.end() == "ended with code 0"
    assert not caplog.records


async def test_what_was_cut_off_as_it_was_killed_is_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, cut = messages.encode("whole"), messages.encode("x" * 1000)[:-700]
    (tmp_path / "cut").write_bytes(whole + cut)
    monkeypatch.setattr(sys, "executable", _script(tmp_path / "python", f"cat {tmp_path / 'cut'}; kill -9 $$"))
    async with Child("this") as child:
        assert [message async for message in child.messages()] == ["whole"]
        assert await child.end() == "was killed by signal 9"


async def test_one_that_goes_on_is_killed() -> None:
    async with Child("loadgen.runner.worker_main") as child:
        pass  # it waits for a job
    assert await child.end() == "was killed by signal 9"


async def test_what_it_says_on_stderr_is_said_on_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", _script(tmp_path / "python", r"printf 'one\ntwo\nunfinish\377' >&2"))
    async with Child("this") as child:
        await child.end()
    assert capsys.readouterr().err == "one\ntwo\nunfinish\\xff"


async def test_it_is_not_waited_for_whoever_keeps_its_stderr_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", _script(tmp_path / "python", "sleep 60 & echo $! > $0.pid"))
    monkeypatch.setattr("loadgen.util.child_process.PATIENCE_S", 0.01)
    async with Child("this") as child:
        await child.end()
    os.kill(int((tmp_path / "python.pid").read_text()), signal.SIGKILL)
