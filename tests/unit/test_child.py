"""A process of ours leaves nothing behind, however it ends."""

import asyncio
import os
import sys
from collections.abc import Iterator

import pytest

from loadgen.child import Child


@pytest.fixture
def _told_by_the_loop() -> Iterator[None]:
    """Children are reaped by the loop, when it comes round to it; before 3.12 a thread may do so at any time."""
    if sys.version_info >= (3, 12):
        yield
        return
    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    yield
    asyncio.set_child_watcher(None)


@pytest.mark.usefixtures("_told_by_the_loop")
async def test_one_that_has_ended_unnoticed_keeps_its_exit_code(caplog: pytest.LogCaptureFixture) -> None:
    async with Child("this") as child:
        os.waitid(os.P_PID, child._process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop must not be told
    assert await child.end() == "ended with code 0"
    assert not caplog.records


async def test_one_that_goes_on_is_killed() -> None:
    async with Child("loadgen.worker") as child:
        pass  # it waits for a job
    assert await child.end() == "was killed by signal 9"
