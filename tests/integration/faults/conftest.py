"""Every test here sends through the real transport, in either event loop, and must leave nothing
behind.
"""

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import uvloop

from loadgen.util import child_process

SO_TIMESTAMPING, RX_SOFTWARE, SOFTWARE = 37, 1 << 3, 1 << 4  # from <linux/net_tstamp.h>
SWITCHED_ON_S = 0.05


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """asyncio's own loop, as in programs that embed a run, and uvloop, as in the command."""
    return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session", autouse=True)
def kernel_stamps_on() -> Iterator[None]:
    """The kernel stamps what arrives as long as any socket asks for it, and begins a while after
    the first does.
    """
    with socket.socket() as stamped:
        stamped.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RX_SOFTWARE | SOFTWARE)
        time.sleep(SWITCHED_ON_S)
        yield


@pytest.fixture(autouse=True)
async def nothing_is_left() -> AsyncIterator[None]:
    """No task, and no file descriptor of any kind: socket, pipe, timer or file."""
    before = descriptors()
    yield
    await asyncio.sleep(0)
    child_process.end_kept()  # that a program keeps for its next run
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
    assert descriptors() - before == Counter()


@pytest.fixture
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections may be used again at once."""
    monkeypatch.setattr("loadgen.core.keep_alive.REST_NS", 0)
    monkeypatch.setattr("loadgen.core.keep_alive.LONG_REST_NS", 0)
    monkeypatch.setattr("loadgen.core.keep_alive.LEAST_LONG_REST_NS", 0)


def descriptors() -> Counter[str]:
    """The open file descriptors of this process by kind: `socket`, `pipe`, `anon_inode`, or a
    path.
    """
    found: Counter[str] = Counter()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # the one with which the folder was listed
        found[target.partition(":")[0]] += 1
    del found["/dev/null"]  # libuv keeps one from its first listening socket on
    return found
