"""CompiledTransport: sends requests over connections that compiled code reads and stamps.

`Connector` opens connections. Each is given the compiled protocol of
`loadgen.core.stamped_connection`, and is one of the compiled `Connections`, where a send is a pop
and a write. A request that finds no connection waits until one has been opened or is free.
"""

import asyncio
from typing import TYPE_CHECKING

from loadgen.client.connector import Connector
from loadgen.client.timeouts import Timeouts
from loadgen.client.transport import Transport
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
from loadgen.util.clock import NS_PER_S, now_ns
from loadgen.util.dialer import CannotConnect
from loadgen.util.source_address import SourceAddresses
from loadgen.workload.target import Target

if TYPE_CHECKING:
    from loadgen.core.stamped_connection import Tap

CONNECTS_AT_ONCE = 64


class CompiledTransport(Connections, Transport):
    """The connections of a run to one target.

    Args:
        target: Where to ask.
        timeouts: Limits for connecting and for each request.
        read_loop: The read loop of the other targets' transports in the same event loop; by default
            a new one.
        sources: Where its connections come from; by default the system chooses.

    Attributes:
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
        Connections.__init__(self, read_loop or ReadLoop(), pool, RequestEncoder(target))
        Transport.__init__(self, target, timeouts)
        self.opened = 0
        self._scanner = None if target.api.dialect is None else DialectScanner(target.api.dialect)
        self._opening: set[asyncio.Task[None]] = set()  # connections for requests that wait
        self._serve_alarm: asyncio.Handle | None = None
        self._watch_alarm: asyncio.Handle | None = None
        self._connector = Connector(
            target.url,
            target.route,
            timeouts.connect / NS_PER_S or None,
            sources or SourceAddresses(),
        )

    @property
    def reuses(self) -> bool:
        """As of a `Transport`."""
        return self.pool.reusable

    @property
    def starved(self) -> int:
        """As of a `Transport`."""
        return self.pool.threads.starved

    async def warm(self, count: int) -> int:
        """As `Transport.warm`."""
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

    def tap(self, tap: "Tap") -> None:
        """As `Transport.tap`."""
        super().tap(tap)
        for connection in self.pool:
            connection.tap = tap

    def abandon(self, outcome: Outcome, detail: str) -> None:
        """As `Transport.abandon`."""
        super().abandon(outcome, detail)
        while self.pool.waiting:
            self._end_waiting(outcome, detail)
        for task in self._opening:
            task.cancel()

    async def close(self) -> None:
        """As `Transport.close`."""
        self.abandon(Outcome.CANCELLED, "the run ended")
        await asyncio.gather(*self._opening, return_exceptions=True)
        for alarm in (self._serve_alarm, self._watch_alarm):
            if alarm is not None:
                alarm.cancel()
        # A connection may have been opened in the same turn.
        self.abandon(Outcome.CANCELLED, "the run ended")
        self.pool.close_all()
        self._connector.close()
        await super().close()

    # -- what Connection calls
    # ---------------------------------------------------------------------------

    def sent_first(self, record: Record) -> None:
        """Watch the first request of a connection: idle connections may hold the threads of the
        server.
        """
        self.pool.threads.sent(record)
        if self._watch_alarm is None:
            self._watch()

    def dropped(self, connection: Connection, error: Exception | None) -> None:
        """Handle a connection that the peer or the network ended."""
        if connection not in self.active:
            self.pool.lost(connection, now_ns())
        elif not connection.record.first_byte:
            self.pool.lost_request(connection)

    # -- connecting
    # --------------------------------------------------------------------------------------

    async def _connect(self) -> tuple[Connection, dict[str, int]]:
        """Open a connection; return it, and how long the parts of that took."""
        try:
            transport, tls, bytes_read, parts = await self._connector.connect()
        except CannotConnect as error:
            self._note_unconnected(error)
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
        return connection, parts

    async def _connect_ahead(self) -> None:
        """Open a connection; it is ready at once, also where others that open with it are
        cancelled.
        """
        connection, _ = await self._connect()
        self.pool.opened(connection, now_ns())

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
        connection, parts = await self._connect()
        at_ns = now_ns()
        if self.pool.waiting:
            self.pool.begin_use()
            self._send_waiting(connection, at_ns, parts)
        else:
            self.pool.opened(connection, at_ns)

    def _send_waiting(
        self, connection: Connection, at_ns: int, parts: dict[str, int] | None = None
    ) -> None:
        """Send the next of the requests that wait for a connection."""
        record, request, since_ns = self.pool.next_waiting()
        record.connect_ns = at_ns - since_ns
        if parts is not None:
            record.connect_parts = parts
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
        record, _, _ = self.pool.next_waiting()
        self._end_unsent(record, outcome, detail)

    def _watch(self) -> None:
        """Look whether idle connections hold threads that requests wait for, as long as one may."""
        pause_ns = self.pool.watch(now_ns())
        self._watch_alarm = None
        if pause_ns:
            self._watch_alarm = asyncio.get_running_loop().call_later(
                pause_ns / NS_PER_S, self.hook.guarded, self._watch
            )

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
