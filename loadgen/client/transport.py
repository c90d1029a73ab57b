"""Sends requests over connections to one target, and brings every Record to its end.

`Connector` opens connections. Each is given the compiled protocol of
`loadgen.core.stamped_connection`, and is one of the compiled `Connections`, where a send is a pop
and a write. A request that finds no connection waits until one has been opened or is free.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from loadgen.client.alarm_queue import AlarmQueue
from loadgen.client.connector import Connector
from loadgen.client.decoder import Decoder
from loadgen.client.open_ends import OpenEnds
from loadgen.client.timeouts import LimitWatch, Timeouts
from loadgen.core.connections import Connections
from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.keep_alive import MARGIN_NS, REST_NS, KeepAlive
from loadgen.core.outcome import Outcome
from loadgen.core.pool import Pool
from loadgen.core.read_loop import ReadLoop
from loadgen.core.record import Record
from loadgen.core.request_encoder import RequestEncoder
from loadgen.core.server_threads import ServerThreads
from loadgen.core.stamped_connection import Connection
from loadgen.metrics.failures import Reachability, ReachabilityTracker
from loadgen.util.clock import NS_PER_S, clock_for, now_ns
from loadgen.util.dialer import CannotConnect
from loadgen.util.source_address import SourceAddresses
from loadgen.workload.target import Target

if TYPE_CHECKING:
    from loadgen.core.stamped_connection import Tap

CONNECTS_AT_ONCE = 64
# A request that reached no server is handed on this much later: a closed loop must not retry a dead
# one at full speed.
REFUSED_PAUSE_S = 0.1
# an answer this recent proves that the server lives; older ones need not be compared
HEARD_NS = 250_000_000
HELD_NS = 500_000_000  # a proxy accepts at once and closes only when it has found no server


class Transport(Connections):
    """The connections of a run to one target.

    Args:
        target: Where to ask.
        timeouts: Limits for connecting and for each request.
        read_loop: The read loop of the other targets' transports in the same event loop; by default
            a new one.
        sources: Where its connections come from; by default the system chooses.

    Attributes:
        target: The same.
        opened: Connections opened so far.
    """

    def __init__(
        self,
        target: Target,
        timeouts: Timeouts,
        read_loop: ReadLoop | None = None,
        sources: SourceAddresses | None = None,
    ) -> None:
        pool = Pool(self._close, KeepAlive(), ServerThreads(timeouts.first_byte // 2))
        super().__init__(read_loop or ReadLoop(), pool, RequestEncoder(target))
        self.target = target
        self.opened = 0
        self._tracker = ReachabilityTracker()
        self._scanner = None if target.api.dialect is None else DialectScanner(target.api.dialect)
        self._limits = LimitWatch(self.active, timeouts, self._abandon, self.hook.guarded)
        self._open_ends = OpenEnds(self._end_open, self.hook.guarded)
        self._early = AlarmQueue(
            partial(self.hook.guarded, self._end_early), clock_for(self.read_loop)
        )
        self._opening: set[asyncio.Task[None]] = set()  # connections for requests that wait
        self._serve_alarm: asyncio.Handle | None = None
        self._watch_alarm: asyncio.Handle | None = None
        # what reached no server, until it is handed on
        self._pausing: dict[Record, asyncio.Handle] = {}
        self._decoder = Decoder(self._decoded)
        self._tap: Tap | None = None
        self._is_open = False
        self._connector = Connector(
            target.url,
            target.route,
            timeouts.connect / NS_PER_S or None,
            sources or SourceAddresses(),
        )

    async def open(self) -> None:
        """Begin to read connections; call in the loop that will send."""
        if self.target.may_be_compressed:
            from aiohttp import client_proto  # noqa: F401 - now, so that the first response does not wait
        self.read_loop.open(asyncio.get_running_loop())
        self._limits.start()
        self._is_open = True

    def use(self, target: Target) -> None:
        """Send the next requests with the credentials of this target, which else is the same."""
        self.target = target
        self.encoder.use(target)

    @property
    def reuses(self) -> bool:
        """Whether the server lets a connection carry more than one request, as far as it has
        shown.
        """
        return self.pool.reusable

    @property
    def starved(self) -> int:
        """Requests that waited for a thread of the server that an idle connection held."""
        return self.pool.threads.starved

    async def warm(self, count: int) -> int:
        """Open connections ahead of the requests until `count` can be used; return how many there
        are.

        Those that are open can be used where it is cancelled, too.
        """
        pool = self.pool
        while rest_ns := pool.rest_left_ns(now_ns()):  # noqa: ASYNC110 - it waits for time to pass
            await asyncio.sleep(rest_ns / NS_PER_S)
        pool.peak = max(pool.peak, count)
        at_once = 1  # the witness of the others
        while (ready := pool.ready(now_ns())) < count:
            batch = [self._connect_ahead() for _ in range(min(at_once, count - ready))]
            failed = any(await asyncio.gather(*batch, return_exceptions=True))
            if failed or pool.ready(now_ns()) <= ready:  # not opened, or closed at once
                break  # the requests themselves will tell why
            if at_once == 1 and pool.ready(now_ns()) < count:
                await asyncio.sleep(MARGIN_NS / NS_PER_S)
            at_once = CONNECTS_AT_ONCE
        return pool.ready(now_ns())

    @property
    def silent(self) -> dict[int, int]:
        """Requests whose streams have been silent for a while, by index, and the stamp of the
        last token.
        """
        return self._limits.silent

    def tap(self, tap: "Tap") -> None:
        """Have `tap` capture all traffic from now on; call while nothing is in flight."""
        self._tap = tap
        for connection in self.pool:
            connection.tap = tap

    def reachability(self, start_ns: int) -> Reachability:
        """Return whether the server still accepts connections, on a clock that started at
        `start_ns`.
        """
        at_ns = now_ns()
        latest_ns = self.heard_ns
        for connection in self.active:
            if latest_ns > at_ns - HEARD_NS:
                break
            record = connection.record
            held_ns = record.sent if at_ns - record.sent >= HELD_NS else 0
            latest_ns = max(latest_ns, record.last_token or record.first_byte or held_ns)
        self._tracker.answered(latest_ns)
        return self._tracker.reachability(start_ns)

    def abandon(self, outcome: Outcome, detail: str) -> None:
        """End everything in flight with `outcome`."""
        for connection in list(self.active):
            self._abandon(connection, outcome, detail)
        for record in list(self._pausing):
            self._end_pause(record)
        while self.pool.waiting:
            self._end_waiting(outcome, detail)
        for task in self._opening:
            task.cancel()

    async def close(self) -> None:
        """Close every connection; nothing is left open afterwards."""
        self.abandon(Outcome.CANCELLED, "the run ended")
        await asyncio.gather(*self._opening, return_exceptions=True)
        await self._decoder.close()
        # A connection may have been opened in the same turn.
        self.abandon(Outcome.CANCELLED, "the run ended")
        self._early.close()
        self._open_ends.close()
        for alarm in (self._serve_alarm, self._watch_alarm):
            if alarm is not None:
                alarm.cancel()
        self.pool.close_all()
        self._connector.close()
        self._limits.stop()
        if self._is_open:
            self.read_loop.close()
        await asyncio.sleep(0)  # lets the loop run the transports' connection_lost

    # -- what Connection calls
    # ---------------------------------------------------------------------------

    def refused(self, connection: Connection) -> None:
        """Pass on the record of a request whose connection closed before a byte of an answer."""
        record = connection.record
        if connection.requests == 1:
            self._tracker.answered(self.heard_ns)
            self._tracker.refused(
                record.closed, record.detail or "closed before a byte of a response"
            )
        self._end_later(record)

    def sent_first(self, record: Record) -> None:
        """Watch the first request of a connection: idle connections may hold the threads of the
        server.
        """
        self.pool.threads.sent(record)
        if self._watch_alarm is None:
            self._watch()

    def ends_early(self, connection: Connection) -> None:
        """End a request so long after it was sent, unless its response has ended."""
        record = connection.record
        self._early.add(record.sent + record.end_after_ns, (connection, record))

    def finished(self, connection: Connection, is_complete: bool) -> None:
        """Wait for the end of a response whose answer is complete, but not for long."""
        self._open_ends.add(connection, is_complete)

    def dropped(self, connection: Connection, error: Exception | None) -> None:
        """Handle a connection that the peer or the network ended."""
        if connection not in self.active:
            self.pool.lost(connection, now_ns())
        elif not connection.record.first_byte:
            self.pool.lost_request(connection)

    def reader(self, connection: Connection) -> None:
        """Have aiohttp's own reader take a response over whose body the compiled path does not
        decode.
        """
        self._decoder.begin(connection)

    # -- connecting
    # --------------------------------------------------------------------------------------

    async def _connect(self) -> Connection:
        try:
            transport, tls, bytes_read = await self._connector.connect()
        except CannotConnect as error:
            outcome = Outcome(error.kind)
            if outcome is Outcome.REFUSED:
                self._tracker.answered(self.heard_ns)
                self._tracker.refused(now_ns(), str(error))
            elif outcome is Outcome.TLS_ERROR:
                self._tracker.answered(now_ns())
            raise
        try:
            connection = Connection(self, transport, self.read_loop, tls, self._scanner, bytes_read)
            connection.transport.set_protocol(connection)
            connection.begin_reading()
        except BaseException:
            transport.abort()
            raise
        connection.tap = self._tap
        self.opened += 1
        if tls is not None:
            self._tracker.answered(now_ns())
        return connection

    async def _connect_ahead(self) -> None:
        """Open a connection; it is ready at once, also where others that open with it are
        cancelled.
        """
        self.pool.opened(await self._connect(), now_ns())

    def serve(self) -> None:
        """Send requests that wait on connections that are free, and open others."""
        pool = self.pool
        at_ns = now_ns()
        while pool.waiting and (connection := pool.take_for_waiting(at_ns)) is not None:
            self._send_waiting(connection, at_ns)
        loop = asyncio.get_running_loop()
        if count := pool.to_open(at_ns):
            for _ in range(count):
                task = loop.create_task(self._connect_for_waiting())
                self._opening.add(task)
                task.add_done_callback(self._opening_ended)
            loop.call_soon(self.hook.guarded, self._begun, count)
        if self._serve_alarm is not None:
            self._serve_alarm.cancel()
            self._serve_alarm = None
        if pool.waiting:
            self._serve_alarm = loop.call_later(REST_NS / NS_PER_S, self.hook.guarded, self.serve)

    def _begun(self, count: int) -> None:
        """Begin to open more connections, once the loop has begun to open `count`."""
        self.pool.beginning -= count
        if self.pool.waiting:
            self.serve()

    async def _connect_for_waiting(self) -> None:
        """Open a connection, and send on it at once: if the peer closes it at once, that must show
        as the outcome of a request.
        """
        connection = await self._connect()
        at_ns = now_ns()
        if self.pool.waiting:
            self.pool.begin_use()
            self._send_waiting(connection, at_ns)
        else:
            self.pool.opened(connection, at_ns)

    def _send_waiting(self, connection: Connection, at_ns: int) -> None:
        """Send the next of the requests that wait for a connection."""
        record, request, since_ns = self.next_waiting()
        record.connect_ns = at_ns - since_ns
        self.send_on(connection, record, request)

    def _opening_ended(self, task: "asyncio.Task[None]") -> None:
        """Serve the requests that wait; one fails where no connection is opened for it any more."""
        pool = self.pool
        pool.opening -= 1
        self._opening.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Exception) and not isinstance(error, CannotConnect | OSError):
            self.hook.on_fault(error)
        if error is not None and pool.waiting > pool.opening:
            outcome = (
                Outcome(error.kind) if isinstance(error, CannotConnect) else Outcome.CLIENT_ERROR
            )
            self._end_waiting(outcome, str(error) or type(error).__name__)
        if pool.waiting:
            self.serve()

    def _end_waiting(self, outcome: Outcome, detail: str) -> None:
        """End the next of the requests that wait for a connection."""
        record, _, _ = self.next_waiting()
        record.end(outcome, detail, now_ns())
        if outcome is Outcome.CANCELLED:
            self.on_end(record)
        else:
            self._end_later(record)

    def _watch(self) -> None:
        """Look whether idle connections hold threads that requests wait for, as long as one may."""
        pause_ns = self.pool.watch(now_ns())
        self._watch_alarm = None
        if pause_ns:
            self._watch_alarm = asyncio.get_running_loop().call_later(
                pause_ns / NS_PER_S, self.hook.guarded, self._watch
            )

    def _end_later(self, record: Record) -> None:
        """Pass the record of a request that reached no server to `on_end`, after a pause."""
        self._pausing[record] = asyncio.get_running_loop().call_later(
            REFUSED_PAUSE_S, self.hook.guarded, self._end_pause, record
        )

    def _end_pause(self, record: Record) -> None:
        self._pausing.pop(record).cancel()
        self.on_end(record)

    def _close(self, connection: Connection) -> None:
        """Close a connection without a callback for its end."""
        connection.release()
        transport: asyncio.Transport = connection.transport
        if not connection.lost:
            transport.set_protocol(asyncio.Protocol())
        # What is left of a request that was given up must not be sent, and a silent peer not keep a
        # TLS session.
        if transport.get_write_buffer_size() or self._connector.tls is not None:
            transport.abort()
        else:
            connection.shut()
            transport.close()

    # -- ends that are not the server's
    # ------------------------------------------------------------------

    def _abandon(self, connection: Connection, outcome: Outcome, detail: str) -> None:
        self._decoder.abandon(connection)
        connection.abandon(outcome, detail, now_ns())
        self.ended(connection)

    def _end_early(self, request: tuple[Connection, Record], at_ns: int) -> None:
        connection, record = request
        if connection in self.active and connection.record is record and record.ends_as:
            self._abandon(connection, *record.ends_as)

    def _decoded(self, connection: Connection) -> None:
        """End a response that was decoded, unless it has been abandoned."""
        if connection in self.active:
            self.ended(connection)

    def _end_open(self, connection: Connection) -> None:
        """End a response that its server leaves open after the last event of its answer."""
        if connection in self.active:
            self._abandon(connection, Outcome.STALLED, "no end in time")
