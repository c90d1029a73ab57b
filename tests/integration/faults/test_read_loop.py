"""ReadLoop: reads sockets in one queue with alarms, and leaves all but reading to the event
loop.
"""

import asyncio
import contextlib
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import ReadLoop
from loadgen.core.record import Record
from loadgen.core.stamped_connection import Connection
from loadgen.util.clock import clock_for, now_ns
from tests.helpers.response_bytes import answer, delta, streamed
from tests.helpers.run_facts import CHUNKED, chunk

S = 1_000_000_000
READ_BYTES = 1 << 18  # that one read takes at most


class Owner:
    """Remembers what it is told, and can be waited for."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.more = asyncio.Event()

    def _add(self, what: Any) -> None:
        self.told.append(what)
        self.more.set()

    def ended(self, connection: Connection) -> None:
        self._add(connection.record.outcome)

    def finished(self, connection: Connection, is_complete: bool) -> None: ...

    def dropped(self, connection: Connection, error: Exception | None) -> None:
        self._add(type(error))

    def reader(self, connection: Connection) -> None:
        self._add("reader")

    async def hears(self, count: int) -> list[Any]:
        while len(self.told) < count:
            self.more.clear()
            await asyncio.wait_for(self.more.wait(), 10)
        return self.told


class Pair:
    """A connection of which a test holds the other end."""

    def __init__(self, connection: Connection, owner: Owner, server: socket.socket) -> None:
        self.connection, self.owner, self.server = connection, owner, server

    @property
    def read_by_loop(self) -> bool:
        reading: bool = self.connection.transport.is_reading()
        return reading

    async def takes(self, size: int) -> None:
        loop = asyncio.get_running_loop()
        while size:
            size -= len(await loop.sock_recv(self.server, size))


@contextlib.asynccontextmanager
async def connected(read_loop: ReadLoop) -> AsyncIterator[Pair]:
    """A connection that `read_loop` reads, which is opened and closed with it."""
    loop, owner = asyncio.get_running_loop(), Owner()
    read_loop.open(loop)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(owner, None, read_loop)
        transport, _ = await loop.create_connection(lambda: connection, *listener.getsockname())
        server, _ = listener.accept()
    with server:
        server.setblocking(False)
        connection.begin_reading()
        yield Pair(connection, owner, server)
        connection.release()
        transport.abort()
    read_loop.close()


async def test_read_loop_reads_and_stamps_without_the_event_loop() -> None:
    async with connected(ReadLoop()) as pair:
        record, before_ns = Record(), now_ns()
        pair.connection.send(b"request", record)
        await pair.takes(len(b"request"))
        pair.server.send(streamed(answer("a", "b")))
        assert await pair.owner.hears(1) == [Outcome.OK]
        assert before_ns <= record.sent <= record.first_byte == record.last_token <= now_ns()
        assert not pair.read_by_loop


async def test_window_was_filled_though_the_read_enlarges_it() -> None:
    async with connected(ReadLoop()) as pair:
        record = Record()
        pair.connection.send(b"request", record)
        await pair.takes(len(b"request"))
        pair.server.send(CHUNKED)
        token = chunk(delta(content="x" * 12_000))
        with contextlib.suppress(BlockingIOError):
            while True:
                pair.server.send(token)
        time.sleep(0.005)  # noqa: ASYNC251 - so that the client reads late
        while not record.events:
            await asyncio.sleep(0)
        assert record.window_filled


async def test_a_reader_that_fails_keeps_no_other_from_reading() -> None:
    """The kernel reports each socket only once: what one batch skips would never be read."""
    loop, faults, read = asyncio.get_running_loop(), [], []
    loop.set_exception_handler(lambda _, context: faults.append(str(context["exception"])))

    def reader(number: int, end: socket.socket) -> Callable[[], None]:
        def on_readable() -> None:
            read.append((number, end.recv(100)))
            if number < 2:
                raise RuntimeError(f"fault {number}")

        return on_readable

    read_loop = ReadLoop()
    read_loop.open(loop)
    with contextlib.ExitStack() as ends:
        for number in range(4):
            near, far = (ends.enter_context(end) for end in socket.socketpair())
            near.setblocking(False)
            read_loop.add_reader(near.fileno(), reader(number, near))
            far.send(b"x")
        read_loop.turn()
    read_loop.close()
    assert sorted(read) == [(number, b"x") for number in range(4)]
    assert sorted(faults) == ["fault 0", "fault 1"]


@pytest.mark.parametrize("by_loop", [False, True], ids=["read loop", "event loop"])
async def test_a_bug_in_the_reading_of_a_response_is_an_error_of_the_client(by_loop: bool) -> None:
    """It is no fault of the server, and its request does not stay open for ever."""

    class Bug:
        def sent(self, record: Record) -> None: ...

        def read(self, record: Record, at_ns: int, data: bytes) -> None:
            raise ZeroDivisionError("a bug")

        def lost(self, record: Record, at_ns: int, error: Exception | None) -> None: ...

    faults: list[Exception] = []
    async with connected(ReadLoop()) as pair:
        pair.connection.read_loop.hook.on_fault = faults.append
        pair.connection.tap = Bug()
        request, record = b"x" * (1 << 23 if by_loop else 1), Record()
        pair.connection.send(request, record)
        assert pair.read_by_loop == by_loop
        pair.server.send(streamed(answer("a", "b")))
        assert await pair.owner.hears(2) == [Outcome.CLIENT_ERROR, type(None)]
        assert record.detail == "ZeroDivisionError: a bug"
        assert [type(fault) for fault in faults] == [ZeroDivisionError]


@pytest.mark.parametrize("method", ["ended", "dropped", "lost"])
async def test_a_bug_in_what_a_connection_tells_its_owner_is_told(method: str) -> None:
    """The record would never be counted, and the run never end."""

    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("a bug")

    told: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
    async with connected(ReadLoop()) as pair:
        pair.connection.read_loop.hook.on_fault = told.set_result
        if method == "lost":
            pair.connection.tap = SimpleNamespace(sent=lambda record: None, lost=fail)
        else:
            setattr(pair.owner, method, fail)
        pair.connection.send(b"request", Record())
        await pair.takes(len(b"request"))
        if method == "ended":
            pair.server.send(streamed(answer("a", "b")))
        else:
            pair.server.close()
        assert isinstance(await asyncio.wait_for(told, 10), ZeroDivisionError)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's stamps are Linux's")
async def test_the_answer_to_a_request_that_exceeds_the_socket_buffer_is_stamped() -> None:
    async with connected(ReadLoop()) as pair:
        pair.connection.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16
        )
        request, record = b"x" * (1 << 23), Record()
        pair.connection.send(request, record)
        assert pair.read_by_loop  # it writes the rest
        await pair.takes(len(request))
        while pair.read_by_loop:
            await asyncio.sleep(0)
        pair.server.send(streamed(answer("a", "b")))
        assert await pair.owner.hears(1) == [Outcome.OK]
        assert record.user_stamped == 0


async def test_segment_that_was_counted_early_is_not_counted_again() -> None:
    """A segment that comes between a read and the question how many came is counted with the
    wrong read.
    """
    token = chunk(delta(content="x"))

    class Between:
        """Sends a further token between the first read and what is asked about it."""

        left = 1

        def sent(self, record: Record) -> None:
            pass

        def read(self, record: Record, at_ns: int, data: bytes) -> None:
            if self.left:
                self.left -= 1
                pair.server.send(token)

        def lost(self, record: Record, at_ns: int, error: Exception | None) -> None:
            pass

    read_loop = ReadLoop()
    async with connected(read_loop) as pair:
        pair.connection.tap = Between()
        pair.connection.send(b"request", record := Record())
        await pair.takes(len(b"request"))
        pair.server.send(CHUNKED + token + token)
        read_loop.turn()
        assert record.events == 2
        pair.server.send(token)  # a second segment, beside the one that was counted early
        read_loop.turn()
        assert record.events == 4
        assert record.earliest is not None
        assert record.earliest[2] < record.stamps[2]


async def test_tokens_that_one_read_brings_came_after_the_socket_was_seen_empty() -> None:
    """The read loop asked the kernel for all of its sockets, and this one had nothing to read."""
    token, read_loop = chunk(delta(content="x")), ReadLoop()
    async with connected(read_loop) as other, connected(read_loop) as pair:
        for each in (other, pair):
            each.connection.send(b"request", record := Record())
            await each.takes(len(b"request"))
        pair.server.send(CHUNKED + token)
        read_loop.turn()
        before_ns = time.monotonic_ns()
        other.server.send(CHUNKED + token)
        read_loop.turn()  # finds nothing of the pair's
        pair.server.send(token)
        pair.server.send(token)
        read_loop.turn()
        assert record.earliest is not None
        assert record.stamps[0] < before_ns < record.earliest[1] < record.stamps[1]
        assert record.earliest[2] == record.stamps[2]


async def test_step_of_the_wall_clock_costs_the_stamps_around_it() -> None:
    token, read_loop = chunk(delta(content="x")), ReadLoop()
    async with connected(read_loop) as pair:
        clock = read_loop.kernel_clock
        pair.connection.send(b"request", record := Record())
        await pair.takes(len(b"request"))
        pair.server.send(CHUNKED + token)
        read_loop.turn()
        assert (record.events, record.user_stamped, clock.steps) == (1, 0, 0)
        before_ns = now_ns()
        clock.observe(before_ns, time.time_ns() + 3600 * S, before_ns + 1)
        pair.server.send(token)
        read_loop.turn()
        assert (record.events, record.user_stamped) == (2, 1)
        assert before_ns <= record.stamps[1] == record.read_times[1] <= now_ns()
        while (
            not clock.usable
        ):  # it has been set back, which costs the stamps until the next pair of readings
            read_loop.turn()
        assert clock.steps == 2
        pair.server.send(token)
        read_loop.turn()
        assert (record.events, record.user_stamped) == (3, 1)
        assert record.stamps == sorted(record.stamps)
        assert record.stamps[2] < record.read_times[2]


async def test_tokens_that_the_event_loop_reads_have_user_stamps() -> None:
    request, token = b"r" * (8 << 20), chunk(delta(content="x"))
    async with connected(ReadLoop()) as pair:
        pair.connection.send(request, record := Record())
        pair.server.send(CHUNKED + token)
        while not record.events:
            await asyncio.sleep(0)
        assert (pair.read_by_loop, record.user_stamped) == (True, 1)
        assert record.stamps == record.read_times
        await pair.takes(len(request))
        pair.server.send(token)
        while record.events < 2:
            await asyncio.sleep(0)
        pair.server.send(token)
        while record.events < 3:
            await asyncio.sleep(0)
        assert not pair.read_by_loop
        assert record.user_stamped < 3, "the read loop reads again"


async def test_event_loop_sends_the_rest_of_a_large_request() -> None:
    read_loop, request = ReadLoop(), b"r" * (8 << 20)
    async with connected(read_loop) as pair:
        pair.connection.send(request, record := Record())
        assert pair.read_by_loop
        await pair.takes(len(request))
        whole = streamed(answer("a"))
        pair.server.send(whole[:-20])
        while not record.events:
            await asyncio.sleep(0)
        assert not pair.read_by_loop, "the read loop reads the rest"
        pair.server.send(whole[-20:])
        assert await pair.owner.hears(1) == [Outcome.OK]
        assert pair.connection.keep_alive


async def test_early_answer_ends_keep_alive() -> None:
    async with connected(ReadLoop()) as pair:
        pair.connection.send(b"r" * (8 << 20), Record())
        pair.server.send(streamed(answer("a")))
        assert await pair.owner.hears(1) == [Outcome.OK]
        assert not pair.connection.keep_alive


async def test_data_before_the_end_is_read_first() -> None:
    async with connected(ReadLoop()) as pair:
        record = Record()
        pair.connection.send(b"request", record)
        await pair.takes(len(b"request"))
        pair.server.send(streamed(answer("a"))[:-20])
        pair.server.shutdown(socket.SHUT_WR)
        assert await pair.owner.hears(2) == [type(None), Outcome.TRUNCATED]
        assert record.events == 1
        assert record.last_token < record.closed


async def test_answer_larger_than_one_read_is_read_whole() -> None:
    wire, largest = streamed(answer(*["x" * 1000] * 8000)), 0
    async with connected(ReadLoop()) as pair:
        record = Record()
        pair.connection.send(b"request", record)
        await pair.takes(len(b"request"))
        while wire:
            filled = 0
            with contextlib.suppress(BlockingIOError):
                while filled < len(wire):
                    filled += pair.server.send(wire[filled:])
            wire, largest = wire[filled:], max(largest, filled)
            await asyncio.sleep(0)
        assert largest > 2 * READ_BYTES
        assert await pair.owner.hears(1) == [Outcome.OK]
        assert record.events == 8000


async def test_reset_is_reported_as_reset() -> None:
    async with connected(ReadLoop()) as pair:
        pair.connection.send(b"request", record := Record())
        await pair.takes(len(b"request"))
        pair.server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        pair.server.close()
        assert await pair.owner.hears(2) == [ConnectionResetError, Outcome.REFUSED]
        assert "reset" in (record.detail or "")


async def test_idle_connection_closed_by_the_server_is_dropped() -> None:
    async with connected(ReadLoop()) as pair:
        pair.server.close()
        assert await pair.owner.hears(1) == [type(None)]
        assert pair.connection.lost


async def test_alarms_share_the_queue_of_the_sockets() -> None:
    read_loop, rung = ReadLoop(), asyncio.Event()
    read_loop.open(asyncio.get_running_loop())
    alarm = clock_for(read_loop).alarm(asyncio.get_running_loop(), rung.set)
    alarm.set(now_ns() + 1_000_000)
    await asyncio.wait_for(rung.wait(), 10)
    alarm.close()
    read_loop.close()


async def test_socket_forgotten_during_a_turn_is_not_read() -> None:
    read_loop, read = ReadLoop(), list[int]()
    read_loop.open(asyncio.get_running_loop())
    with contextlib.ExitStack() as stack:
        pairs = [tuple(map(stack.enter_context, socket.socketpair())) for _ in range(2)]

        def reader(number: int) -> Callable[[], None]:
            def act() -> None:
                read.append(number)
                read_loop.remove_reader(pairs[1 - number][0].fileno())
                pairs[number][0].recv(1)

            return act

        for number, (ours, theirs) in enumerate(pairs):
            read_loop.add_reader(ours.fileno(), reader(number))
            theirs.send(b"x")
        read_loop.turn()
    assert len(read) == 1
    read_loop.close()
