"""Memory network: requests go to a server that is a function, and its answers arrive by a clock.

    def server(index: int, body: bytes, arrived_ns: int) -> Reply:  # closes after 20 ms
        return Reply([], closes_ns=arrived_ns + 20_000_000)

    async def main() -> None:
        load = Load(settings, Memory(server, virtual.clock()), requests, recorder, stripe,
        virtual.clock()) await load.run()

    virtual.run(main())

Only the sockets are missing: bytes go through the same compiled `Response` as those of a network,
so that Records and Outcomes are the real ones. `loadgen.testing.memory_servers` has ready-made
servers.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loadgen.client.alarm_queue import AlarmQueue
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import SendHook
from loadgen.core.record import Record
from loadgen.util.clock import Clock


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request; if it is neither complete nor closed, the connection hangs.

    Attributes:
        parts: The bytes and the time at which they reach the client, (ns on the clock, bytes), in
            order.
        closes_ns: When the connection ends, ns on the clock; None: it stays open.
        error: The error with which the connection ends; None: an orderly end.

    Raises:
        ValueError: The times are not in order.
    """

    parts: Sequence[tuple[int, bytes]]
    closes_ns: int | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        times = [at_ns for at_ns, _ in self.parts]
        if self.closes_ns is not None:
            times.append(self.closes_ns)
        if times != sorted(times):
            raise ValueError(f"a reply's times are not in order: {times}")


# Called as server(index, body, arrived_ns) for every request, in the order in which they are sent.
Server: TypeAlias = Callable[[int, bytes, int], Reply]
# The same, where later requests decide when an answer comes: it sets the result of the future then.
LateServer: TypeAlias = Callable[[int, bytes, int], "asyncio.Future[Reply]"]


class Memory:
    """A transport to a server in memory: a `loadgen.core.sender.Link` that always has a free
    connection.

    Args:
        server: The function that answers.
        clock: The clock of its answers.

    Attributes:
        on_end: Called once with every Record that was given to `send`, when it has its outcome.
        hook: Called between reads, so that requests are sent on time.
    """

    def __init__(self, server: Server | LateServer, clock: Clock) -> None:
        self.on_end: Callable[[Record], object] = lambda record: None
        self.hook = SendHook()
        self.clock = clock
        self._server = server
        self._streams: dict[_Stream, None] = {}  # in the order in which they were sent
        self._early = AlarmQueue(self._end_early, clock)

    def send(self, record: Record, body: bytes) -> None:
        """Send one request now, in no time."""
        record.sent = self.clock.now_ns()
        record.reused = True
        reply = self._server(record.index, body, record.sent)
        stream = _Stream(self, record)
        self._streams[stream] = None
        if record.end_after_ns >= 0:
            self._early.add(record.sent + record.end_after_ns, stream)
        if isinstance(reply, Reply):
            stream.answer(reply)
        else:
            reply.add_done_callback(lambda done: self._answer(stream, done.result()))

    def _answer(self, stream: "_Stream", reply: Reply) -> None:
        """Take a reply that came later, unless its response has ended before."""
        if stream in self._streams:
            stream.answer(reply)

    def abandon(self, outcome: Outcome, detail: str) -> None:
        """End everything in flight with `outcome`."""
        for stream in list(self._streams):
            stream.abandon(outcome, detail, self.clock.now_ns())
            self.ended(stream)

    def _end_early(self, stream: "_Stream", at_ns: int) -> None:
        """End a request that the client itself ends now, unless its answer has ended."""
        if stream in self._streams and stream.record.ends_as:
            stream.abandon(*stream.record.ends_as, at_ns)
            self.ended(stream)

    def ended(self, stream: "_Stream") -> None:
        """End a response: pass its record on."""
        stream.alarm.close()
        self._streams.pop(stream, None)
        self.on_end(stream.record)


class _Stream(Response):
    """A response in flight: `loadgen.core.stamped_connection.Connection` without a socket."""

    def __init__(self, owner: Memory, record: Record) -> None:
        self._owner = owner
        self._reply = Reply([])
        self._next = 0
        self.alarm = owner.clock.alarm(asyncio.get_running_loop(), self._arrive)
        self.begin(record)

    def answer(self, reply: Reply) -> None:
        """Take the reply of the server."""
        self._reply = reply
        self.wait()

    def wait(self) -> None:
        """Set the alarm for the next part, or for the end if the response closes."""
        if self._next < len(self._reply.parts):
            self.alarm.set(self._reply.parts[self._next][0])
        elif self._reply.closes_ns is not None:
            self.alarm.set(self._reply.closes_ns)

    def _arrive(self) -> None:
        at_ns = self._owner.clock.now_ns()
        parts = self._reply.parts
        if self._next < len(parts):
            self.feed(parts[self._next][1], at_ns)
            self._next += 1
        else:
            self.eof(at_ns, self._reply.error)
        if self.complete:
            self._owner.ended(self)
        else:
            self.wait()
        if (
            at_ns >= self._owner.hook.due_ns and self._owner.hook.callback is not None
        ):  # last: it may send
            self._owner.hook.callback()
