"""ReadLoop waits in place of uvloop, and nothing that an event loop has to do waits for it."""

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
import uvloop

from loadgen.client.compiled_transport import CompiledTransport
from loadgen.client.timeouts import Timeouts
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import ReadLoop
from loadgen.core.record import Record
from loadgen.util.clock import clock_for, now_ns
from tests.helpers.fault_requests import target

S = 1_000_000_000


class Reads:
    """Sockets of a read loop: what is read from one may be sent to it again at once."""

    def __init__(self, read_loop: ReadLoop, stack: contextlib.ExitStack) -> None:
        self.ours, self.theirs = map(stack.enter_context, socket.socketpair())
        self.count = 0
        self.more: Callable[[], bool] = lambda: False
        read_loop.add_reader(self.ours.fileno(), self._read)
        stack.callback(read_loop.remove_reader, self.ours.fileno())

    def begin(self) -> None:
        self.theirs.send(b"x")

    def _read(self) -> None:
        self.ours.recv(1)
        self.count += 1
        if self.more():
            self.begin()


@contextlib.contextmanager
def reading() -> Iterator[tuple[ReadLoop, Reads]]:
    with contextlib.ExitStack() as stack:
        read_loop = ReadLoop()
        read_loop.open(asyncio.get_running_loop())
        stack.callback(read_loop.close)
        yield read_loop, Reads(read_loop, stack)


async def test_reads_take_no_turn_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, turns, read_eventfd = asyncio.get_running_loop(), list[int](), os.eventfd_read
    if not isinstance(loop, uvloop.Loop):
        pytest.skip("only uvloop says what it has to do")

    def begin_turn(fd: int) -> int:
        turns.append(fd)
        return read_eventfd(fd)

    monkeypatch.setattr(os, "eventfd_read", begin_turn)
    with reading() as (_, reads):
        done = loop.create_future()

        def more() -> bool:
            if reads.count == 1_000:
                done.set_result(None)
            return not done.done()

        reads.more = more
        reads.begin()
        await done
    assert reads.count == 1_000
    assert 1 <= len(turns) <= 3


Do = Callable[[], object]


def call_soon(loop: asyncio.AbstractEventLoop, do: Do) -> None:
    loop.call_soon(do)


def call_later(loop: asyncio.AbstractEventLoop, do: Do) -> None:
    loop.call_later(0.01, do)


def call_from_a_thread(loop: asyncio.AbstractEventLoop, do: Do) -> None:
    threading.Timer(0.01, loop.call_soon_threadsafe, [do]).start()


def send_to_a_socket(loop: asyncio.AbstractEventLoop, do: Do) -> None:
    ours, theirs = socket.socketpair()

    def read() -> None:
        loop.remove_reader(ours)
        ours.close()
        theirs.close()
        do()

    loop.add_reader(ours, read)
    theirs.send(b"x")


def send_a_signal(loop: asyncio.AbstractEventLoop, do: Do) -> None:
    loop.add_signal_handler(signal.SIGUSR1, do)
    os.kill(os.getpid(), signal.SIGUSR1)


@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize(
    "act", [call_soon, call_later, call_from_a_thread, send_to_a_socket, send_a_signal]
)
async def test_event_loop_does_what_it_has_to_do(
    act: Callable[[asyncio.AbstractEventLoop, Do], None], is_busy: bool
) -> None:
    """What it has to do begins in a reader, where the event loop does not see it begin."""

    loop = asyncio.get_running_loop()
    done = loop.create_future()
    # A turn that this timer has called for comes too late.
    too_late = loop.call_later(10, done.set_exception, TimeoutError())

    def do() -> None:
        if not done.done():
            done.set_result(None)

    with reading() as (_, reads):

        def more() -> bool:
            if reads.count == 1:
                act(loop, do)
            return is_busy and not done.done()

        reads.more = more
        reads.begin()
        await done
    too_late.cancel()
    loop.remove_signal_handler(signal.SIGUSR1)


async def test_busy_event_loop_lets_it_read() -> None:
    with reading() as (_, reads):
        reads.begin()
        while not reads.count:
            await asyncio.sleep(0)


async def test_two_read_loops_share_an_event_loop() -> None:
    with reading() as (_, reads), reading() as (_, others):
        done = asyncio.get_running_loop().create_future()

        def answer() -> bool:
            others.begin()
            return False

        def ask_again() -> bool:
            if others.count == 10:
                done.set_result(None)
            else:
                reads.begin()
            return False

        reads.more, others.more = answer, ask_again
        reads.begin()
        await asyncio.wait_for(done, 10)
        assert (reads.count, others.count) == (10, 10)


async def test_reader_may_close_it() -> None:
    loop, read_loop, read = asyncio.get_running_loop(), ReadLoop(), asyncio.Event()
    read_loop.open(loop)
    ours, theirs = socket.socketpair()
    with ours, theirs:

        def close() -> None:
            read_loop.close()
            read.set()

        read_loop.add_reader(ours.fileno(), close)
        theirs.send(b"x")
        await asyncio.wait_for(read.wait(), 10)
        await asyncio.sleep(0.01)


async def test_new_connection_does_not_wait_for_it() -> None:
    read_loop, ended = ReadLoop(), asyncio.Event()
    transport = CompiledTransport(target("http://127.0.0.1:1"), Timeouts(connect=10 * S), read_loop)
    transport.on_end = lambda record: ended.set()
    await transport.open()
    record = Record()
    alarm = clock_for(read_loop).alarm(
        asyncio.get_running_loop(), lambda: transport.send(record, b"{}")
    )
    alarm.set(now_ns())
    await asyncio.wait_for(ended.wait(), 10)
    assert record.outcome is Outcome.REFUSED
    alarm.close()
    await transport.close()
