"""A network in memory: requests reach a server that is a function, and its answers come back by a clock.

    def server(index: int, body: bytes, arrived_ns: int) -> Reply:  # hangs up after 20 ms
        return Reply([], closes_ns=arrived_ns + 20_000_000)

    async def main() -> None:
        load = Load(settings, Memory(server, virtual.clock()), requests, recorder, due, index, virtual.clock())
        await load.run()

    virtual.run(main())

Only the sockets are missing: bytes go through the same compiled `Response` as those of a network, so that Records,
Outcomes and all that is made of them are the real ones. `loadgen.testing.memory_servers` has servers ready made.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import SendHook
from loadgen.core.record import Record
from loadgen.util.clock import Clock


@dataclass(frozen=True, slots=True)
class Reply:
    """What comes back for one request. One that neither becomes whole nor closes hangs, as servers do.

    Attributes:
        parts: The bytes and when each of them reaches the client, (ns on the clock, bytes), in order.
        closes_ns: When the connection ends; None: it stays open.
        error: With which error it ends; None for an orderly end.

    Raises:
        ValueError: The times are out of order.
    """

    parts: Sequence[tuple[int, bytes]]
    closes_ns: int | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        times = [at_ns for at_ns, _ in self.parts]
        if self.closes_ns is not None:
            times.append(self.closes_ns)
        if times != sorted(times):
            raise ValueError(f"a reply's times are out of order: {times}")


# Called as server(index, body, arrived_ns) for every request, in the order in which they are sent.
Server: TypeAlias = Callable[[int, bytes, int], Reply]


class Memory:
    """A transport to a server in memory: a `loadgen.client.load_loop.Sender` to which a connection is always at hand.

    Args:
        server: What answers.
        clock: By which its answers come.

    Attributes:
        on_end: Called once with every Record that was given to `send`, when it has its outcome.
        bell: Rung between reads, for whoever has to send on time.
    """

    def __init__(self, server: Server, clock: Clock) -> None:
        self.on_end: Callable[[Record], None] = lambda record: None
        self.bell = SendHook()
        self.clock = clock
        self._server = server
        self._streams: dict[_Stream, None] = {}  # in the order in which they were sent

    def send(self, record: Record, body: bytes) -> None:
        """Send one request now; sending takes no time."""
        record.sent, record.reused = self.clock.now_ns(), True
        stream = _Stream(self, record, self._server(record.index, body, record.sent))
        self._streams[stream] = None
        stream.wait()

    def abandon(self, outcome: Outcome, detail: str) -> None:
        """End everything in flight with `outcome`."""
        for stream in list(self._streams):
            stream.abandon(outcome, detail, self.clock.now_ns())
            self.ended(stream)

    def ended(self, stream: "_Stream") -> None:
        """A response has come to its end: hand the record on."""
        stream.alarm.close()
        self._streams.pop(stream, None)
        self.on_end(stream.record)


class _Stream(Response):
    """A response under way: `loadgen.core.connection.Connection` without a socket."""

    def __init__(self, owner: Memory, record: Record, reply: Reply) -> None:
        self._owner, self._reply, self._next = owner, reply, 0
        self.alarm = owner.clock.alarm(asyncio.get_running_loop(), self._arrive)
        self.begin(record)

    def wait(self) -> None:
        """Until more arrives, if it ever does."""
        if self._next < len(self._reply.parts):
            self.alarm.set(self._reply.parts[self._next][0])
        elif self._reply.closes_ns is not None:
            self.alarm.set(self._reply.closes_ns)

    def _arrive(self) -> None:
        at_ns, parts = self._owner.clock.now_ns(), self._reply.parts
        if self._next < len(parts):
            self.feed(parts[self._next][1], at_ns)
            self._next += 1
        else:
            self.eof(at_ns, self._reply.error)
        if self.wants_reader:
            raise ValueError("an encoded body is aiohttp's to read, and a network in memory has no aiohttp")
        if self.complete:
            self._owner.ended(self)
        else:
            self.wait()
        if at_ns >= self._owner.bell.due_ns and self._owner.bell.callback is not None:  # last: it may send
            self._owner.bell.callback()
