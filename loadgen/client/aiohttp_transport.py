"""AiohttpTransport: the plain transport, where aiohttp owns the connections and reads them.

It is what the compiled transport is held to, and reads what that one does not: compressed bodies,
and what an HTTP proxy forwards without a tunnel. A token has the time at which the event loop read
it; how much earlier it can have come is known from the alarms of the loop probe.

aiohttp undoes framing and compression. A `Response` then reads each answer as one that ends with
its connection, so that events and outcomes are those of the compiled transport.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from aiohttp import (
    BytesPayload,
    ClientError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    StreamReader,
)
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import (
    ContentLengthError,
    HttpProcessingError,
    TransferEncodingError,
)
from yarl import URL

from loadgen.client.timeouts import Timeouts
from loadgen.client.transport import Transport
from loadgen.core.answer import Finish
from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.http1 import CUT_OFF, MAX_HEAD, Response
from loadgen.core.keep_alive import LEAST_LONG_REST_NS, SAFE_AGE_NS
from loadgen.core.outcome import Outcome
from loadgen.core.read_loop import ReadLoop
from loadgen.core.record import Record
from loadgen.core.request_encoder import RequestEncoder
from loadgen.util.clock import NS_PER_S, now_ns
from loadgen.util.dialer import CannotConnect
from loadgen.util.route_connector import RouteConnector
from loadgen.util.source_address import SourceAddresses
from loadgen.workload.target import Target

if TYPE_CHECKING:
    from loadgen.core.stamped_connection import Tap

READ_BYTES = 1 << 24  # so much may be unread by our task before aiohttp stops reading
UNDONE = (b"content-encoding", b"content-length", b"transfer-encoding")  # by aiohttp


class AiohttpTransport(Transport):
    """As `CompiledTransport`, with the same arguments."""

    def __init__(
        self,
        target: Target,
        timeouts: Timeouts,
        read_loop: ReadLoop | None = None,
        sources: SourceAddresses | None = None,
    ) -> None:
        self.read_loop = read_loop or ReadLoop()
        self.hook = self.read_loop.hook
        self.encoder = RequestEncoder(target)
        self.active: set[Exchange] = set()
        self.heard_ns = 0
        self._reuses = False
        super().__init__(target, timeouts)
        self._scanner = None if target.api.dialect is None else DialectScanner(target.api.dialect)
        self._dialing = (target.url, target.route, timeouts.connect / NS_PER_S or None, sources)
        self._url = URL(target.url, encoded=True)
        self._exchanges: set[Exchange] = set()

    @property
    def reuses(self) -> bool:
        """As of a `Transport`: whether a connection has carried more than one."""
        return self._reuses

    @property
    def starved(self) -> int:
        """As of a `Transport`: not known here."""
        return 0

    async def open(self) -> None:
        """As `Transport.open`."""
        await super().open()
        self._connector = RestingConnector(
            *self._dialing,
            StampedProtocol,
            limit=0,
            keepalive_timeout=SAFE_AGE_NS / NS_PER_S,
        )
        self._session = ClientSession(
            connector=self._connector,
            proxy=self._connector.proxy,
            headers=self._connector.headers,
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=None),
            read_bufsize=READ_BYTES,
            max_line_size=MAX_HEAD,
            max_field_size=MAX_HEAD,
        )

    async def warm(self, count: int) -> int:
        """As `Transport.warm`."""
        request = ClientRequest("POST", self._url, loop=asyncio.get_running_loop())
        opened = await asyncio.gather(
            *(self._connector.connect(request, [], ClientTimeout()) for _ in range(count)),
            return_exceptions=True,
        )
        ready = [each for each in opened if not isinstance(each, BaseException)]
        for connection in ready:
            connection.release()
        return len(ready)

    def send(self, record: Record, body: bytes) -> None:
        """As `Transport.send`."""
        request = self.encoder.encode(record, body)
        exchange = Exchange(self, record, request, Response(self._scanner), self._tap)
        self._exchanges.add(exchange)
        exchange.task = asyncio.get_running_loop().create_task(self._carry(exchange))
        exchange.task.add_done_callback(lambda _: self._exchanges.discard(exchange))

    def abandon(self, outcome: Outcome, detail: str) -> None:
        """As `Transport.abandon`."""
        super().abandon(outcome, detail)
        for exchange in list(self._exchanges):
            if exchange.record.outcome is None:  # it has no connection yet
                exchange.task.cancel()
                self._end_unsent(exchange.record, outcome, detail)

    async def close(self) -> None:
        """As `Transport.close`."""
        self.abandon(Outcome.CANCELLED, "the run ended")
        await asyncio.gather(*(each.task for each in self._exchanges), return_exceptions=True)
        if self._is_open:
            await self._session.close()
        await super().close()

    def ended(self, carrier: "Exchange") -> None:
        """As `Transport.ended`."""
        self.active.discard(carrier)
        carrier.leave()
        record = carrier.record
        self._reuses = self._reuses or record.reused
        if record.first_byte:
            self.heard_ns = max(self.heard_ns, record.last_token or record.first_byte)
        if record.outcome is Outcome.REFUSED:
            self.refused(carrier)
        else:
            self.on_end(record)

    async def _carry(self, exchange: "Exchange") -> None:
        """Send a request, and read its response to the end."""
        record = exchange.record
        try:
            await self._exchange(exchange)
        except CannotConnect as error:
            self._note_unconnected(error)
            self._end_unsent(record, Outcome(error.kind), str(error))
            return
        except (ClientError, HttpProcessingError, OSError) as error:
            exchange.fail(error)
        except Exception as fault:  # noqa: BLE001 - the event loop would only log it
            detail = f"{type(fault).__name__}: {fault}"
            exchange.response.abandon(Outcome.CLIENT_ERROR, detail, now_ns())
            self.hook.on_fault(fault)
        self.hook.guarded(self.ended, exchange)

    async def _exchange(self, exchange: "Exchange") -> None:
        async with self._session.post(
            self._url, data=exchange, headers=exchange.fields, allow_redirects=False
        ) as response:
            exchange.content = response.content
            exchange.feed(_head(response))
            async for data in response.content.iter_any():
                exchange.feed(data)
                if exchange.complete:
                    return
        exchange.feed(None)


class RestingConnector(RouteConnector):
    """Has each connection rest behind a response, since the server may close it then."""

    def _release(self, key: Any, protocol: Any, *, should_close: bool = False) -> None:
        release = partial(super()._release, key, protocol, should_close=should_close)
        if should_close or protocol.should_close or not protocol.requests:
            release()
        else:
            self._loop.call_later(LEAST_LONG_REST_NS / NS_PER_S, release)


class StampedProtocol(ResponseHandler):
    """A connection of aiohttp's, which tells its exchange when it is read.

    Attributes:
        exchange: What it carries; None: nothing.
        requests: Requests that it has carried.
        opened_ns: When it was opened.
        was_paused: Whether reading was paused since the last read.
    """

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.exchange: Exchange | None = None
        self.requests = 0
        self.opened_ns = now_ns()
        self.was_paused = False

    def pause_reading(self) -> None:
        """Read no more until what was read has been taken."""
        self.was_paused = True
        super().pause_reading()

    def data_received(self, data: bytes) -> None:
        """Take the time, and have aiohttp read what came."""
        if self.exchange is not None and data:  # without, aiohttp goes on with what came before
            self.exchange.came(data, was_paused=self.was_paused)
            self.was_paused = False
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Take the time of the end."""
        if self.exchange is not None:
            self.exchange.lost(cast("Exception | None", exc))
        super().connection_lost(exc)

    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        """Fail the response: aiohttp would leave a body waiting whose framing is broken."""
        super().set_exception(exc, exc_cause or exc)
        content = None if self.exchange is None else self.exchange.content
        if content is not None and not content.is_eof() and content.exception() is None:
            content.set_exception(exc)


class Exchange(BytesPayload):
    """One request, which aiohttp writes, and the response to it.

    Args:
        transport: Whose it is.
        record: That of the request.
        request: Its bytes.
        response: Reads the response into the record.
        tap: Gets what is sent and all that arrives; None: nobody does.

    Attributes:
        record, response: The same.
        fields: Those of the head of the request.
        task: What has aiohttp send the request and read the response.
        content: What aiohttp has read of the body; None: the head has not come.
    """

    task: "asyncio.Task[None]"

    def __init__(
        self,
        transport: AiohttpTransport,
        record: Record,
        request: bytes,
        response: Response,
        tap: "Tap | None",
    ) -> None:
        head, _, body = request.partition(b"\r\n\r\n")
        super().__init__(body)
        lines = head.decode("latin-1").split("\r\n")[1:]
        self.fields = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
        self.record, self.response = record, response
        self.response.begin(record)
        self._protocol: StampedProtocol | None = None
        self.content: StreamReader | None = None
        self._transport = transport
        self._tap = tap
        self._begun_ns = now_ns()
        # when what was not fed yet was read, and can have come at the earliest
        self._read_ns = self._earliest_ns = 0
        self._is_fed = True
        self._error: Exception | None = None

    @property
    def complete(self) -> bool:
        """As of a Carrier."""
        return self.response.complete

    @property
    def requests(self) -> int:
        """As of a Carrier."""
        return 0 if self._protocol is None else self._protocol.requests

    def abandon(self, outcome: Outcome, detail: str, at_ns: int) -> None:
        """As of a Carrier."""
        self.response.abandon(outcome, detail, at_ns)
        self.task.cancel()

    def leave(self) -> None:
        """Leave the connection."""
        if self._protocol is not None and self._protocol.exchange is self:
            self._protocol.exchange = None

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        """Write the request, whose head aiohttp has held back for this, and take the time."""
        self._begin(writer.protocol)
        await super().write_with_length(writer, content_length)
        await asyncio.sleep(0)  # uvloop writes at the end of a turn
        if writer.transport is not None and not writer.transport.get_write_buffer_size():
            self.record.written = now_ns()

    def _begin(self, protocol: StampedProtocol) -> None:
        record, transport = self.record, self._transport
        self._protocol, protocol.exchange = protocol, self
        protocol.requests += 1
        record.reused = protocol.requests > 1
        record.sent = now_ns()
        if protocol.opened_ns > self._begun_ns:
            record.connect_ns = record.sent - self._begun_ns
        transport.active.add(self)
        transport.hook.sends += record.index >= 0
        if record.end_after_ns >= 0:
            transport.ends_early(self)
        if self._tap is not None:
            self._tap.sent(record)

    def came(self, data: bytes, *, was_paused: bool) -> None:
        """Take bytes that were read just now, and the time.

        Args:
            data: The bytes.
            was_paused: Whether the socket was not read since the bytes before.
        """
        record, transport = self.record, self._transport
        before_ns, at_ns = self._read_ns, now_ns()
        self._read_ns = at_ns
        if self._is_fed:
            since_ns = before_ns if was_paused else transport.read_loop.event_loop_since_ns()
            self._earliest_ns = min(max(record.sent, since_ns), at_ns)
            self._is_fed = False
        record.first_byte = record.first_byte or at_ns
        transport.hook.reads += 1
        if self._tap is not None:
            self._tap.read(record, at_ns, data)

    def lost(self, error: Exception | None) -> None:
        """Take the time at which the connection was closed or, by an error, broken."""
        self._read_ns, self._error = now_ns(), error
        if self._tap is not None:
            self._tap.lost(self.record, self._read_ns, error)

    def feed(self, data: bytes | None, error: str | None = None) -> None:
        """Read the next bytes of the response without framing, as those of `feed_unstamped`."""
        record = self.record
        counted, finish = record.counted, record.finish
        self._is_fed = True
        self.response.feed_unstamped(data, self._earliest_ns, self._read_ns or now_ns(), error)
        if record.index >= 0:
            self._transport.hook.tokens += record.counted - counted
        if record.finish != finish and not self.complete:
            self._transport.finished(self, record.finish == Finish.COMPLETE)

    def fail(self, error: Exception) -> None:
        """End the response with what aiohttp says of it."""
        cause = error.__cause__ or error
        # less came than the framing promised
        is_cut = isinstance(cause, ContentLengthError | TransferEncodingError)
        if isinstance(cause, HttpProcessingError) and not is_cut:
            detail = " ".join(str(cause).split()) or type(cause).__name__
            self.response.abandon(Outcome.PROTOCOL_ERROR, detail, now_ns())
            return
        told = None if self._error is None else str(self._error) or type(self._error).__name__
        self.feed(None, told or (CUT_OFF if self.record.status else None))


def _head(response: ClientResponse) -> bytes:
    """Return the head of a response as it would be without framing and compression."""
    fields = (
        b"%b: %b\r\n" % pair for pair in response.raw_headers if pair[0].lower() not in UNDONE
    )
    reason = (response.reason or "").encode("latin-1", "replace")
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (response.status, reason, b"".join(fields))
