"""Transport: sends request bytes over pooled connections and brings every Record to its end.

aiohttp's connector resolves, connects and does TLS. Each connection is checked out of it once, given the
compiled protocol of `loadgen.wire`, and kept in an idle list of our own, so that a send is a pop and a
write in place: no task, future or coroutine per request.
"""

import asyncio
import errno
import secrets
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen import http
from loadgen.capture import TappedReader
from loadgen.clock import now_ns
from loadgen.outcomes import Outcome
from loadgen.redaction import Redaction
from loadgen.sources import Sources
from loadgen.target import Target
from loadgen.wire import Connection, Poll, Record

if TYPE_CHECKING:
    from loadgen.wire import Tap

REUSE_MARGIN_NS = 1_000_000_000  # an idle connection this close to the server's own timeout is not used again
# Some servers (llama.cpp) promise keep-alive and close all the same, most often within half a millisecond of the
# response, on a crowded machine some tens of milliseconds later. A request sent meanwhile would be lost, and must not
# be sent twice. So a connection rests before it is used again, longer until the server has answered on one that it had
# answered on before, and once a server has closed one so soon, none is.
REST_NS = 5_000_000
UNPROVEN_REST_NS = 250_000_000
SOON_NS = 1_000_000_000
CONNECTS_AT_ONCE = 64
# Errors of connecting that are this machine's, not the server's.
OUR_LIMITS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in ns; 0 is no limit. `first_token` and `whole` count from sent, `stall` from the last token."""

    connect: int
    first_token: int = 0
    stall: int = 0
    whole: int = 0

    @property
    def sweep_s(self) -> float:
        """How often streams are looked at, in seconds: a tenth of the smallest limit, between 20 ms and 60 s."""
        limits = [limit for limit in (self.first_token, self.stall, self.whole) if limit]
        return min(max(min(limits, default=600e9) / 10e9, 0.02), 60.0)

    def passed(self, record: Record, at_ns: int) -> Outcome | None:
        """Which limit `record` has passed at `at_ns`."""
        if self.whole and at_ns - record.sent > self.whole:
            return Outcome.TIMEOUT
        if not record.first_token:
            late = self.first_token and at_ns - record.sent > self.first_token
            return Outcome.TIMEOUT_FIRST_TOKEN if late else None
        return Outcome.STALLED if self.stall and at_ns - record.last_token > self.stall else None


class Transport:
    """The connections to one target.

    Args:
        target: Where to ask.
        timeouts: Limits for connecting and for each request.
        poll: That of transports to other targets in the same loop; by default one of its own.
        sources: Where its connections come from; by default the system chooses.

    Attributes:
        on_end: Called once with every Record that was given to `send`, when it has its outcome.
        bell: Rung between reads, for whoever has to send on time.
        opened: Connections opened so far.
        reuses: Whether connections carry more than one request; False once the server has shown that it closes them.
    """

    def __init__(
        self, target: Target, timeouts: Timeouts, poll: Poll | None = None, sources: Sources | None = None
    ) -> None:
        self.target, self.timeouts = target, timeouts
        self.on_end: Callable[[Record], None] = lambda record: None
        self.bell = self._poll = poll or Poll()
        self.opened = 0
        self.reuses = True
        self._sources = sources or Sources()
        self._head = target.head(f"{secrets.token_hex(4)}-")
        self._rest_ns = UNPROVEN_REST_NS
        self._redacted = Redaction(target.headers)
        self._idle: deque[Connection] = deque()
        self._active: set[Connection] = set()
        self._late: dict[asyncio.Task[None], Record] = {}  # requests that wait for a connection of their own
        self._reading: set[asyncio.Task[None]] = set()  # responses that aiohttp's reader has taken over
        self._tap: Tap | None = None
        self._abandoned = (Outcome.CANCELLED, "the run ended")
        self._sweeper: asyncio.TimerHandle | None = None
        self._session: Any = None

    async def open(self) -> None:
        """Prepare to connect; call in the loop that will send."""
        import aiohttp
        from aiohttp.client_reqrep import ClientRequest
        from yarl import URL

        # verify_tls False keeps encryption but accepts any certificate.
        self._connector = aiohttp.TCPConnector(
            limit=0,  # aiohttp's default of 100 would queue requests inside the client
            limit_per_host=0,
            ttl_dns_cache=None,  # one look-up a run: a changing answer would change the target under test
            use_dns_cache=True,
            ssl=self.target.verify_tls,
            enable_cleanup_closed=False,
            socket_factory=self._sources.socket,
        )
        self._session = aiohttp.ClientSession(connector=self._connector, auto_decompress=True)
        loop = asyncio.get_running_loop()
        self._poll.open(loop)
        self._template = ClientRequest(
            "POST", URL(self.target.url), loop=loop, session=self._session, ssl=self.target.verify_tls
        )
        self._connect_timeout = aiohttp.ClientTimeout(total=None, connect=self.timeouts.connect / 1e9 or None)
        self._sweeper = loop.call_later(self.timeouts.sweep_s, self._sweep)

    async def warm(self, count: int) -> int:
        """Open connections ahead of the requests until `count` are at hand; returns how many there are then.

        Those that are open are at hand where it is cancelled, too.
        """
        at_ns = now_ns()
        for connection in [c for c in self._idle if not _usable(c, at_ns)]:
            self._idle.remove(connection)
            self._close(connection)
        while len(self._idle) < count:
            batch = [self._connect_ahead() for _ in range(min(CONNECTS_AT_ONCE, count - len(self._idle)))]
            if any(await asyncio.gather(*batch, return_exceptions=True)):
                break  # the requests themselves will tell why
        return len(self._idle)

    def tap(self, tap: "Tap") -> None:
        """Tell `tap` of all that is sent and comes from now on; call while nothing is in flight."""
        self._tap = tap
        for connection in self._idle:
            connection.tap = tap

    def send(self, record: Record, body: bytes) -> None:
        """Send one request now, or as soon as a connection is open; `on_end` is called with the record later."""
        request = self._head % (record.index, len(body)) + body
        connection = self._take()
        if connection is not None:
            record.reused = True
            self._active.add(connection)
            connection.send(request, record)
        else:
            self._poll.leaning += 1  # until the task has ended: the loop is to see to it at once
            task = asyncio.get_running_loop().create_task(self._send_late(record, request))
            self._late[task] = record
            task.add_done_callback(self._late_ended)

    def abandon(self, outcome: Outcome, detail: str) -> None:
        """End everything in flight with `outcome`."""
        self._abandoned = (outcome, detail)
        for connection in list(self._active):
            self._abandon(connection, outcome, detail)
        for task in [*self._late, *self._reading]:
            task.cancel()

    async def close(self) -> None:
        """Close every connection; nothing is left open afterwards."""
        if self._sweeper:
            self._sweeper.cancel()
        self.abandon(Outcome.CANCELLED, "the run ended")
        await asyncio.gather(*self._late, *self._reading, return_exceptions=True)
        for connection in self._idle:
            self._close(connection)
        self._idle.clear()
        if self._session is not None:
            await self._session.close()
            self._poll.close()
        await asyncio.sleep(0)  # lets the loop run the transports' connection_lost

    # -- what Connection calls ---------------------------------------------------------------------------

    def ended(self, connection: Connection) -> None:
        """A response is whole: keep the connection or close it, then hand the record on."""
        self._active.discard(connection)
        if connection.idle_since and connection.record.first_byte:
            self._rest_ns = REST_NS
        if connection.keep_alive and self.reuses:
            connection.idle_since = now_ns()
            self._idle.append(connection)
        else:
            self._close(connection)
        self._tell(connection.record)

    def dropped(self, connection: Connection, error: Exception | None) -> None:
        """The peer or the network ended the connection; aiohttp's handler must know, or closing would wait for it."""
        handler = connection.handle.protocol
        if handler is not None:
            handler.connection_lost(error)
        unused = connection not in self._active or (connection.record.reused and not connection.record.first_byte)
        if connection.idle_since and unused and now_ns() - connection.idle_since < SOON_NS:
            self.reuses = False

    def reader(self, connection: Connection) -> None:
        """A body that the compiled path does not decode: aiohttp's own reader takes the response over."""
        connection.record.by_reader = True
        handler = connection.handle.protocol
        tapped = handler if self._tap is None else TappedReader(handler, connection.record, self._tap)
        connection.transport.set_protocol(tapped)
        handler.set_response_params(read_until_eof=True, auto_decompress=True)
        handler.data_received(connection.raw())
        task = asyncio.get_running_loop().create_task(self._read(connection, handler))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    # -- connecting --------------------------------------------------------------------------------------

    def _take(self) -> Connection | None:
        """The idle connection that has rested longest, if it has rested enough and can carry another request."""
        at_ns = now_ns()
        while self._idle and at_ns - self._idle[0].idle_since >= self._rest_ns:
            connection = self._idle.popleft()
            if _usable(connection, at_ns) and (self.reuses or not connection.idle_since):
                return connection
            self._close(connection)
        return None

    async def _connect(self) -> Connection:
        handle = await self._connector.connect(self._template, [], self._connect_timeout)
        connection = Connection(self, handle, handle.transport, self._poll)
        connection.transport.set_protocol(connection)
        connection.begin_reading()
        connection.tap = self._tap
        self.opened += 1
        return connection

    async def _connect_ahead(self) -> None:
        """A connection is at hand as soon as it is open, though others be given up that were to be opened with it."""
        self._idle.append(await self._connect())

    async def _send_late(self, record: Record, request: bytes) -> None:
        started = now_ns()
        try:
            connection = await self._connect()
        except Exception as error:  # noqa: BLE001 - whatever keeps us from connecting is the record's outcome
            self._fail(record, _connect_outcome(error), http.reason(error) or type(error).__name__)
        else:
            record.connect_ns = now_ns() - started
            self._active.add(connection)
            connection.send(request, record)

    def _late_ended(self, task: "asyncio.Task[None]") -> None:
        self._poll.leaning -= 1
        record = self._late.pop(task)
        if task.cancelled():  # perhaps before its first step
            self._fail(record, *self._abandoned)

    def _fail(self, record: Record, outcome: Outcome, detail: str) -> None:
        record.outcome, record.detail, record.closed = outcome, detail, now_ns()
        self._tell(record)

    def _tell(self, record: Record) -> None:
        """Hand an ended record on, without credentials that the server may have repeated."""
        if record.detail:
            record.detail = self._redacted(record.detail)
        if record.finish_reason:
            record.finish_reason = self._redacted(record.finish_reason)
        record.redaction = self._redacted
        self.on_end(record)

    def _close(self, connection: Connection) -> None:
        """Give the connection back to aiohttp as one that must not be pooled, and close it."""
        connection.release()
        if connection.handle.protocol is not None:
            if not connection.lost:
                connection.transport.set_protocol(connection.handle.protocol)
            connection.handle.close()

    # -- ends that are not the server's ------------------------------------------------------------------

    def _abandon(self, connection: Connection, outcome: Outcome, detail: str) -> None:
        connection.abandon(outcome, detail, now_ns())
        self.ended(connection)

    def _sweep(self) -> None:
        at_ns = now_ns()
        for connection in list(self._active):
            outcome = self.timeouts.passed(connection.record, at_ns)
            if outcome is not None:
                self._abandon(connection, outcome, f"no {'end' if outcome is Outcome.TIMEOUT else 'token'} in time")
        self._sweeper = asyncio.get_running_loop().call_later(self.timeouts.sweep_s, self._sweep)

    async def _read(self, connection: Connection, handler: Any) -> None:
        try:
            _, payload = await handler.read()
            async for data in payload.iter_any():
                connection.feed_body(data, now_ns())
                if connection.complete:
                    break
        except asyncio.CancelledError:
            return  # abandoned: the record has its outcome already
        except Exception as failure:  # noqa: BLE001 - whatever aiohttp finds wrong is the record's outcome
            detail = " ".join(str(failure).split()) or type(failure).__name__
            connection.abandon(_reader_outcome(failure), detail, now_ns())
        if not connection.complete:
            connection.eof(now_ns())
        connection.lost = True
        if connection in self._active:
            self.ended(connection)


def _usable(connection: Connection, at_ns: int) -> bool:
    if not connection.keep_alive or connection.transport.is_closing():
        return False  # lost, or bytes came that nobody asked for
    expires_ns = connection.idle_since + connection.keep_alive_ns - REUSE_MARGIN_NS
    return not connection.keep_alive_ns or at_ns < expires_ns


def _connect_outcome(error: BaseException) -> Outcome:
    import aiohttp

    match error:
        case aiohttp.ClientConnectorDNSError():
            return Outcome.DNS_ERROR
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return Outcome.TLS_ERROR
        case asyncio.TimeoutError():
            return Outcome.CONNECT_TIMEOUT
        case OSError(errno=number) if number in OUR_LIMITS:
            return Outcome.CLIENT_ERROR
        case aiohttp.ClientConnectionError() | OSError():
            return Outcome.REFUSED
    return Outcome.CLIENT_ERROR


def _reader_outcome(error: Exception) -> Outcome:
    from aiohttp.http_exceptions import ContentLengthError, HttpProcessingError, TransferEncodingError

    cause = error.__cause__ or error
    cut_off = isinstance(cause, ContentLengthError | TransferEncodingError)  # less came than the framing promised
    broken = isinstance(cause, HttpProcessingError) and not cut_off
    return Outcome.PROTOCOL_ERROR if broken else Outcome.TRUNCATED
