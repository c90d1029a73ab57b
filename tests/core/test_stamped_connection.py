"""A connection as asyncio's protocol: what arrives is stamped first, and its owner is told what
has ended.
"""

import asyncio
import contextlib
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvloop

from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import NEVER, ReadLoop
from loadgen.core.record import Record
from loadgen.core.stamped_connection import Connection
from loadgen.util.clock import now_ns
from tests.helpers.response_bytes import answer, delta, streamed
from tests.helpers.run_facts import CHUNKED, LAST_CHUNK, chunk

MS = 1_000_000


class Owner:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def ended(self, connection: Connection) -> None:
        self.told.append(("ended", connection.record.outcome))

    def finished(self, connection: Connection, is_complete: bool) -> None: ...

    def dropped(self, connection: Connection, error: Exception | None) -> None:
        self.told.append(("dropped", error))

    def reader(self, connection: Connection) -> None:
        self.told.append("reader")


class Wire:
    """A transport that only remembers."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)


def connected(read_loop: ReadLoop | None = None) -> tuple[Connection, Owner, Wire]:
    owner, wire = Owner(), Wire()
    return Connection(owner, wire, read_loop or ReadLoop()), owner, wire


def test_data_before_any_request_is_not_passed_to_a_tap() -> None:
    class Tap:
        def sent(self, record: Record) -> None: ...
        def read(self, record: Record, at_ns: int, data: bytes) -> None:
            read.append((record.index, data))

    read: list[tuple[int, bytes]] = []
    connection, _, _ = connected()
    connection.tap = Tap()
    connection.data_received(b"HTTP/1.0 408 Request Time-out\r\n\r\n")
    assert not connection.keep_alive
    assert not read


def test_data_is_stamped_before_anything_else_runs() -> None:
    connection, _, _ = connected()
    record = Record(due=now_ns())
    connection.send(b"request", record)
    before_ns = now_ns()
    connection.data_received(streamed(answer("a", "b")))
    after_ns = now_ns()
    assert before_ns <= record.first_byte == record.first_token == record.last_token <= after_ns


class Plain(Wire):
    """A transport of a socket."""

    def __init__(self, of: socket.socket) -> None:
        super().__init__()
        self.of = of

    def get_extra_info(self, name: str) -> object:
        return self.of if name == "socket" else None

    def pause_reading(self) -> None: ...
    def set_write_buffer_limits(self, high: int) -> None: ...


@contextlib.contextmanager
def reading() -> Iterator[tuple[ReadLoop, Record, socket.socket]]:
    """An open read loop, the record of a request that was sent, and the server's socket."""
    read_loop, record = ReadLoop(), Record(due=now_ns())
    read_loop.open(asyncio.get_running_loop())
    ours, theirs = socket.socketpair()
    connection = Connection(Owner(), Plain(ours), read_loop)
    try:
        with ours, theirs:
            connection.begin_reading()
            connection.send(b"request", record)
            yield read_loop, record, theirs
            connection.release()
    finally:
        read_loop.close()


async def test_read_loop_stamps_before_anything_else_runs() -> None:
    with reading() as (read_loop, record, theirs):
        theirs.send(streamed(answer("a", "b")))
        read_loop.turn()
        after_ns = now_ns()  # the loop has had no turn
        assert (
            record.sent <= record.first_byte == record.first_token == record.last_token <= after_ns
        )
        assert record.first_byte > 0


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says how long a thread waited to run")
def test_what_wakes_the_thread_may_have_come_as_long_before_as_an_alarm_did() -> None:
    async def scenario() -> None:
        late_ns = MS // 2
        with reading() as (read_loop, record, theirs):
            hook = read_loop.hook
            hook.late_ns = 0
            theirs.send(CHUNKED)
            for _ in range(100):  # an alarm that is too late shows a stall
                hook.alarm_ns = now_ns() + 2 * MS
                await waits_for_tokens(theirs, hook.alarm_ns + late_ns)
                hook.alarm_ns = NEVER
                await waits_for_tokens(theirs, now_ns() + 2 * MS)
                assert record.earliest is not None
                if record.read_times[-1] - record.earliest[-1] >= late_ns:
                    break
            else:
                pytest.fail("no alarm was late")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


async def waits_for_tokens(server: socket.socket, at_ns: int) -> None:
    """Have a read loop read a token, and wait until a time for two more."""

    def send() -> None:
        time.sleep(max(0, at_ns - now_ns()) / 1e9)
        server.send(TOKEN + TOKEN)

    server.send(TOKEN)
    await asyncio.to_thread(send)
    await asyncio.sleep(0.001)


def test_request_is_stamped_before_it_is_written() -> None:
    connection, _, wire = connected()
    record = Record()
    before_ns = now_ns()
    connection.send(b"request", record)
    assert before_ns <= record.sent <= now_ns()
    assert wire.written == [b"request"]


def test_owner_gets_one_end_per_response() -> None:
    connection, owner, _ = connected()
    connection.send(b"request", Record())
    connection.data_received(streamed(answer("a")))
    connection.data_received(b"more")
    assert owner.told == [("ended", Outcome.OK)]
    assert not connection.keep_alive  # nobody asked for more


@pytest.mark.parametrize("error", [None, ConnectionResetError("reset")])
def test_lost_connection_ends_its_response_and_is_dropped(error: Exception | None) -> None:
    connection, owner, _ = connected()
    connection.send(b"request", Record())
    connection.data_received(streamed(answer("a"))[:200])
    connection.connection_lost(error)
    assert owner.told == [("dropped", error), ("ended", Outcome.TRUNCATED)]


def test_lost_idle_connection_ends_no_response() -> None:
    connection, owner, _ = connected()
    connection.connection_lost(None)
    assert owner.told == [("dropped", None)]


def test_send_hook_is_called_by_the_first_read_after_due() -> None:
    read_loop, rung = ReadLoop(), []
    hook = read_loop.hook
    hook.callback = lambda: rung.append(now_ns())
    connection, _, _ = connected(read_loop)
    connection.send(b"request", Record())
    hook.due_ns = NEVER
    connection.data_received(b"HTTP/1.1 200 OK\r\n")
    assert not rung
    hook.due_ns = now_ns()
    connection.data_received(b"Content-Length: 5\r\n")
    assert len(rung) == 1


def test_hook_counts_tokens_of_failed_requests_too() -> None:
    read_loop = ReadLoop()
    one, _, _ = connected(read_loop)
    other, _, _ = connected(read_loop)
    one.send(b"request", Record())
    other.send(b"request", Record())
    assert read_loop.hook.tokens == 0
    data = streamed(answer("a", "b", "c"), size=1 << 20)
    for byte in range(len(data)):
        one.data_received(data[byte : byte + 1])
    assert read_loop.hook.tokens == 3
    other.data_received(data[: data.index(b"data:", data.index(b'"b"'))])
    other.connection_lost(None)
    assert read_loop.hook.tokens == 5


# -- stamps of the kernel

TOKEN = chunk(delta(content="x"))
NO_TOKEN = chunk(delta(content=""))
END = chunk(delta("stop")) + LAST_CHUNK
REAL = 10**18  # CLOCK_REALTIME less CLOCK_MONOTONIC, ns


def stamped() -> tuple[Connection, Record]:
    """A connection whose read loop can convert stamps, with a request that has got the head of
    its response.
    """
    read_loop = ReadLoop()
    read_loop.kernel_clock.observe(1000, REAL + 1000, 1000)
    connection, _, _ = connected(read_loop)
    connection.send(b"request", record := Record())
    connection.take(CHUNKED, record.sent + 10, REAL + record.sent + 5, True)
    return connection, record


def test_stamp_from_before_what_was_read_earlier_is_not_used() -> None:
    """CLOCK_REALTIME was set back since the last pair of readings."""
    connection, record = stamped()
    connection.take(TOKEN, record.sent + 1300, REAL + record.sent + 1000, True)
    at_ns = record.sent + 2000
    connection.take(TOKEN, at_ns, REAL + record.sent - 5_000_000, True)
    assert record.stamps == [record.sent + 1000, at_ns]
    assert record.earliest == [record.sent + 1000, record.sent + 1000]
    assert record.user_stamped == 1


def test_token_alone_in_a_read_is_exact() -> None:
    connection, record = stamped()
    at_ns = record.sent + 1000
    connection.take(TOKEN, at_ns + 300, REAL + at_ns, True)
    assert (record.stamps, record.earliest, record.read_times) == ([at_ns], None, [at_ns + 300])
    assert record.user_stamped == 0


def test_tokens_of_one_read_lie_between_its_stamp_and_the_one_before() -> None:
    connection, record = stamped()
    first, second = record.sent + 1000, record.sent + 5000
    connection.take(TOKEN, first, REAL + first, True)
    connection.take(TOKEN + TOKEN, second, REAL + second, True)
    assert record.stamps == [first, second, second]
    # The last one ends the read: its stamp is exact.
    assert record.earliest == [first, first, second]


def test_tokens_read_together_came_within_the_lateness_of_the_loop() -> None:
    """A server that writes several events a step is no sign of a late client."""
    connection, record = stamped()
    connection.read_loop.hook.late_ns = 300
    at_ns = record.sent + 5000
    connection.take(TOKEN + TOKEN, at_ns + 100, REAL + at_ns, True)
    assert record.earliest == [at_ns - 200, at_ns]


def test_tokens_waited_longer_than_the_loop_was_late_where_the_last_one_did() -> None:
    connection, record = stamped()
    hook = connection.read_loop.hook
    hook.late_ns, hook.handled_ns = 300, record.sent + 100
    at_ns = record.sent + 5000
    connection.take(TOKEN + TOKEN, at_ns + 900, REAL + at_ns, True)
    assert record.earliest == [record.sent + 100, at_ns]


def test_tokens_read_in_the_turn_of_a_late_alarm_may_have_come_in_the_stall() -> None:
    connection, record = stamped()
    hook = connection.read_loop.hook
    hook.late_ns, hook.handled_ns = 0, record.sent + 100
    hook.stalled_ns = at_ns = record.sent + 5000  # the loop has had no turn since
    connection.take(TOKEN + TOKEN, at_ns + 10, REAL + at_ns + 10, True)
    assert record.earliest == [record.sent + 100, at_ns + 10]


def test_token_before_the_beginning_of_another_is_not_exact() -> None:
    connection, record = stamped()
    at_ns = record.sent + 1000
    connection.take(TOKEN + TOKEN[:20], at_ns, REAL + at_ns, True)
    assert record.earliest == [record.sent + 5]
    connection.take(TOKEN[20:], at_ns + 700, REAL + at_ns + 700, True)
    assert record.earliest == [record.sent + 5, at_ns + 700]


def test_stamp_of_a_read_that_left_bytes_is_not_exact() -> None:
    connection, record = stamped()
    at_ns = record.sent + 1000
    connection.take(TOKEN, at_ns, REAL + at_ns, False)
    assert record.earliest == [record.sent + 5]
    # Of the same segment as the bytes before.
    connection.take(TOKEN, at_ns + 200, REAL + at_ns, True)
    assert record.earliest == [record.sent + 5, at_ns]


def test_read_without_a_stamp_is_as_late_as_the_loop_has_been() -> None:
    connection, record = stamped()
    connection.read_loop.hook.late_ns = 400
    at_ns = record.sent + 1000
    connection.take(TOKEN, at_ns, 0, True)
    assert (record.stamps, record.earliest, record.user_stamped) == ([at_ns], [at_ns - 400], 1)


def test_tokens_read_with_the_end_are_bounded_behind_an_event_without_a_token() -> None:
    connection, record = stamped()
    at_ns = record.sent + 1000
    connection.take(NO_TOKEN, at_ns, REAL + at_ns, True)
    connection.take(TOKEN + TOKEN + END, at_ns + 700, REAL + at_ns + 600, True)
    assert record.stamps == [at_ns + 600] * 2
    assert record.earliest == [at_ns] * 2


@pytest.mark.parametrize("event", [NO_TOKEN, chunk(delta("stop"))])
def test_event_without_a_token_is_not_counted_by_its_stamp(event: bytes) -> None:
    connection, record = stamped()
    read_ns = record.sent + 20_000_000
    connection.take(TOKEN, read_ns, 0, True)
    connection.take(event, read_ns, 0, True)
    connection.take(TOKEN, read_ns + 10, REAL + record.sent + 1000, True, reordered=True)
    connection.take(event, read_ns + 10, REAL + record.sent + 1000, True, reordered=True)
    assert (record.user_stamped, record.reordered) == (2, 2)
    connection.take(END, read_ns + 20, REAL + read_ns + 20, True)
    assert (record.events, record.user_stamped, record.reordered) == (2, 1, 1)


def test_end_of_a_chunk_that_came_later_is_not_when_its_token_came() -> None:
    connection, record = stamped()
    first, second = record.sent + 1000, record.sent + 5000
    connection.take(TOKEN[:-2], first, REAL + first, True)
    connection.take(TOKEN[-2:], first + 500, REAL + first + 500, True)
    connection.take(TOKEN, second, REAL + second, True)
    assert record.stamps == [first, second]
    assert record.earliest == [first, first + 500]


def test_finish_event_that_came_later_is_not_when_the_last_token_came() -> None:
    connection, _ = stamped()
    body = delta(content="x") + delta("stop")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    connection.send(b"request", record := Record())
    at_ns = record.sent + 5000
    connection.take(head % len(body), record.sent + 10, REAL + record.sent + 5, True)
    connection.take(body, at_ns, REAL + at_ns, True)
    assert record.outcome is Outcome.OK
    assert (record.stamps, record.earliest) == ([at_ns], [record.sent + 5])


def test_stamp_after_one_that_was_read_late_is_not_before_it() -> None:
    connection, record = stamped()
    late_ns = record.sent + 3000
    connection.take(TOKEN, late_ns, 0, True)
    connection.take(TOKEN, late_ns + 100, REAL + late_ns - 1000, True)
    assert record.stamps == [late_ns, late_ns]
    assert record.earliest is not None
    assert record.earliest[1] == late_ns - 1000


def test_reordered_token_came_between_its_stamp_and_its_reading() -> None:
    """A segment waits behind a lost one and is readable only since that one came."""
    connection, record = stamped()
    stamp_ns, read_ns = record.sent + 1000, record.sent + 20_000_000
    connection.take(TOKEN, read_ns, REAL + stamp_ns, True, reordered=True)
    assert (record.stamps, record.earliest) == ([read_ns], [stamp_ns])
    assert (record.read_times, record.user_stamped) == ([read_ns], 0)


def test_only_the_last_of_reordered_tokens_came_after_the_stamp() -> None:
    connection, record = stamped()
    stamp_ns, read_ns = record.sent + 1000, record.sent + 20_000_000
    connection.take(TOKEN + TOKEN, read_ns, REAL + stamp_ns, True, reordered=True)
    assert record.stamps == [read_ns, read_ns]
    assert record.earliest == [record.sent + 5, stamp_ns]


def test_reordered_token_that_is_read_at_once_keeps_its_stamp() -> None:
    connection, record = stamped()
    at_ns = record.sent + 1000
    connection.take(TOKEN, at_ns + 50_000, REAL + at_ns, True, reordered=True)
    assert (record.stamps, record.earliest) == ([at_ns], None)


def test_segments_of_the_next_response_are_not_reordered() -> None:
    connection, record = stamped()
    connection.take(TOKEN, record.sent + 60_000, REAL + record.sent + 1000, True, reordered=True)
    connection.send(b"request", record := Record())
    connection.take(CHUNKED, record.sent + 10, REAL + record.sent + 5, True)
    at_ns = record.sent + 1_000_000_000
    connection.take(TOKEN, at_ns + 60_000, REAL + at_ns, True)
    assert (record.stamps, record.earliest) == ([at_ns], None)


def test_stamp_in_the_future_is_not_used() -> None:
    connection, record = stamped()
    at_ns = record.sent + 1000
    connection.take(TOKEN, at_ns, REAL + at_ns + 5_000_000, True)
    assert (record.stamps, record.user_stamped) == ([at_ns], 1)


@pytest.mark.parametrize(
    ("size", "late_ns", "expected"),
    [(47 << 10, 2 * MS, False), (49 << 10, 2 * MS, True), (200 << 10, MS // 2, False)],
)
def test_server_waited_where_much_of_the_window_was_read_late(
    size: int, late_ns: int, expected: bool
) -> None:
    connection, record = stamped()
    at_ns = record.sent + 1000
    connection.take(size // len(TOKEN) * TOKEN, at_ns + late_ns, REAL + at_ns, True)
    assert record.window_filled is expected


def test_stamp_by_a_slow_clock_is_as_uncertain_as_the_clock() -> None:
    connection, record = stamped()
    at_ns = record.sent + 20_000
    connection.read_loop.kernel_clock.observe(at_ns, REAL + at_ns + 1500, at_ns + 3000)
    connection.take(TOKEN, at_ns + 9000, REAL + at_ns, True)
    assert (record.stamps, record.earliest) == ([at_ns + 1500], [at_ns - 1500])
    assert record.user_stamped == 0
