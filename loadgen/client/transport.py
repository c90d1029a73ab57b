"""Transport: brings requests to one target, and every Record to its end.

Each kind of transport is a subclass, which opens connections, and sends on them. What ends a
request besides its response is the same for all, and is here.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from loadgen.client.alarm_queue import AlarmQueue
from loadgen.client.open_ends import OpenEnds
from loadgen.client.timeouts import Carrier, LimitWatch, Timeouts
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import ReadLoop, SendHook
from loadgen.core.record import Record
from loadgen.core.request_encoder import RequestEncoder
from loadgen.metrics.failures import Reachability, ReachabilityTracker
from loadgen.util.clock import clock_for, now_ns
from loadgen.util.dialer import CannotConnect
from loadgen.workload.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.core.stamped_connection import Tap

# A request that reached no server is handed on this much later: a closed loop must not retry a dead
# one at full speed.
REFUSED_PAUSE_S = 0.1
# an answer this recent proves that the server lives; older ones need not be compared
HEARD_NS = 250_000_000
HELD_NS = 500_000_000  # a proxy accepts at once and closes only when it has found no server


class Transport:
    """Sends requests to one target.

    A subclass has the attributes that are only declared here.

    Args:
        target: Where to ask.
        timeouts: Limits for each request.

    Attributes:
        target: The same.
        on_end: Called once with every Record that was given to `send`, when it has its outcome.
        encoder: Makes the bytes of its requests; another one may take its place at any time.
        read_loop: Reads its connections, or knows how late the event loop does.
        hook: The hook of the read loop.
        active: What carries a request now.
        heard_ns: When the last token of an answer that has ended came, or its first byte where it
            has none; 0: no answer has ended.
    """

    on_end: "Callable[[Record], object]"
    encoder: RequestEncoder
    read_loop: ReadLoop
    hook: SendHook
    active: set[Any]
    heard_ns: int

    def __init__(self, target: Target, timeouts: Timeouts) -> None:
        self.target = target
        self._tracker = ReachabilityTracker()
        self._limits = LimitWatch(self.active, timeouts, self._abandon, self.hook.guarded)
        self._open_ends = OpenEnds(self._end_open, self.hook.guarded)
        self._early = AlarmQueue(
            partial(self.hook.guarded, self._end_early), clock_for(self.read_loop)
        )
        # what reached no server, until it is handed on
        self._pausing: dict[Record, asyncio.Handle] = {}
        self._tap: Tap | None = None
        self._is_open = False

    def use(self, target: Target) -> None:
        """Send the next requests with the credentials of this target, which else is the same."""
        self.target = target
        self.encoder.use(target)

    @property
    def reuses(self) -> bool:
        """Whether the server lets a connection carry more than one request, as far as it has
        shown.
        """
        raise NotImplementedError

    @property
    def starved(self) -> int:
        """Requests that waited for a thread of the server that an idle connection held."""
        raise NotImplementedError

    def send(self, record: Record, body: bytes) -> None:
        """Send one request now, or as soon as a connection is open; `on_end` is called with the
        record later.
        """
        raise NotImplementedError

    def ended(self, carrier: Any) -> None:
        """Pass on the record of a request whose response has ended."""
        raise NotImplementedError

    async def warm(self, count: int) -> int:
        """Open connections ahead of the requests until `count` can be used; return how many there
        are.

        Those that are open can be used where it is cancelled, too.
        """
        raise NotImplementedError

    async def open(self) -> None:
        """Begin to read connections; call in the loop that will send."""
        self.read_loop.open(asyncio.get_running_loop())
        self._limits.start()
        self._is_open = True

    async def close(self) -> None:
        """Close every connection; nothing is left open afterwards.

        A subclass first ends what is in flight.
        """
        self._early.close()
        self._open_ends.close()
        self._limits.stop()
        if self._is_open:
            self.read_loop.close()
        await asyncio.sleep(0)  # lets the loop run the transports' connection_lost

    @property
    def silent(self) -> dict[int, int]:
        """Requests whose streams have been silent for a while, by index, and the stamp of the
        last token.
        """
        return self._limits.silent

    def tap(self, tap: "Tap") -> None:
        """Have `tap` capture all traffic from now on; call while nothing is in flight."""
        self._tap = tap

    def reachability(self, start_ns: int) -> Reachability:
        """Return whether the server still accepts connections, on a clock that started at
        `start_ns`.
        """
        at_ns = now_ns()
        latest_ns = self.heard_ns
        for carrier in self.active:
            if latest_ns > at_ns - HEARD_NS:
                break
            record = carrier.record
            held_ns = record.sent if at_ns - record.sent >= HELD_NS else 0
            latest_ns = max(latest_ns, record.last_token or record.first_byte or held_ns)
        self._tracker.answered(latest_ns)
        return self._tracker.reachability(start_ns)

    def abandon(self, outcome: Outcome, detail: str) -> None:
        """End everything in flight with `outcome`."""
        for carrier in list(self.active):
            self._abandon(carrier, outcome, detail)
        for record in list(self._pausing):
            self._end_pause(record)

    # -- what carries a request calls
    # ---------------------------------------------------------------------------

    def refused(self, carrier: Carrier) -> None:
        """Pass on the record of a request whose connection closed before a byte of an answer."""
        record = carrier.record
        if carrier.requests == 1:
            self._tracker.answered(self.heard_ns)
            self._tracker.refused(
                record.closed, record.detail or "closed before a byte of a response"
            )
        self._end_later(record)

    def ends_early(self, carrier: Carrier) -> None:
        """End a request so long after it was sent, unless its response has ended."""
        record = carrier.record
        self._early.add(record.sent + record.end_after_ns, (carrier, record))

    def finished(self, carrier: Carrier, is_complete: bool) -> None:
        """Wait for the end of a response whose answer is complete, but not for long."""
        self._open_ends.add(carrier, is_complete)

    # -- ends that are not the server's
    # ------------------------------------------------------------------

    def _note_unconnected(self, error: CannotConnect) -> None:
        """Take note of a connection that could not be opened."""
        outcome = Outcome(error.kind)
        if outcome is Outcome.REFUSED:
            self._tracker.answered(self.heard_ns)
            self._tracker.refused(now_ns(), str(error))
        elif outcome is Outcome.TLS_ERROR:
            self._tracker.answered(now_ns())

    def _end_unsent(self, record: Record, outcome: Outcome, detail: str) -> None:
        """End a request that has found no connection."""
        record.end(outcome, detail, now_ns())
        if outcome is Outcome.CANCELLED:
            self.on_end(record)
        else:
            self._end_later(record)

    def _end_later(self, record: Record) -> None:
        """Pass the record of a request that reached no server to `on_end`, after a pause."""
        self._pausing[record] = asyncio.get_running_loop().call_later(
            REFUSED_PAUSE_S, self.hook.guarded, self._end_pause, record
        )

    def _end_pause(self, record: Record) -> None:
        self._pausing.pop(record).cancel()
        self.on_end(record)

    def _abandon(self, carrier: Carrier, outcome: Outcome, detail: str) -> None:
        carrier.abandon(outcome, detail, now_ns())
        self.ended(carrier)

    def _end_early(self, request: tuple[Carrier, Record], at_ns: int) -> None:
        carrier, record = request
        if carrier in self.active and carrier.record is record and record.ends_as:
            self._abandon(carrier, *record.ends_as)

    def _end_open(self, carrier: Carrier) -> None:
        """End a response that its server leaves open after the last event of its answer."""
        if carrier in self.active:
            self._abandon(carrier, Outcome.STALLED, "no end in time")
