"""Connector: opens connections to the server of a target, with TLS, and says why where it cannot.

TLS goes over a connection that is read and written elsewhere, so that the kernel's stamps belong to
its bytes.
"""

import asyncio
import contextlib
import errno
import ipaddress
import os
import re
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from aiohappyeyeballs import start_connection

from loadgen.core.outcome import Outcome
from loadgen.util.source_address import SourceAddresses

DEFAULT_PORTS = {"http": 80, "https": 443}
# after so long without an answer the next address of the server is tried beside it (RFC 8305)
NEXT_ADDRESS_S = 0.25
READ_BYTES = 1 << 18
# Errors of connecting that are this machine's, not the server's.
OUR_LIMITS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
LOOKING_UP = "looking up"
CONNECTING = "connecting"
TLS_HANDSHAKE = "TLS handshake"


class Connector:
    """Opens TCP connections to one server, and TLS sessions over them. The name of the server is
    looked up once.

    A look-up for each connection would take its time in a thread, and a changing answer would
    change the target under test. Where a name has several addresses, connections begin with each in
    turn.

    Args:
        url: Of the server.
        timeout_s: Limit for the look-up, the connection and the TLS handshake together; None: no
            limit.
        verify_tls: Whether the server's certificate must be trusted.
        sources: Creates the sockets.
    """

    def __init__(
        self, url: str, timeout_s: float | None, *, verify_tls: bool, sources: SourceAddresses
    ) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or DEFAULT_PORTS[parts.scheme]
        self._timeout_s = timeout_s
        self._sources = sources
        self._tls = client_context(verify=verify_tls) if parts.scheme == "https" else None
        self._look_up: asyncio.Future[Any] | None = None
        self._turn = 0

    @property
    def uses_tls(self) -> bool:
        """Whether connections have TLS."""
        return self._tls is not None

    async def open(self) -> tuple[asyncio.Transport, "TlsStream | None"]:
        """Open a connection; its transport has a protocol that does nothing.

        Raises:
            CannotConnect: There is no connection.
        """
        step = LOOKING_UP
        try:
            async with asyncio.timeout(self._timeout_s):
                addresses = await self._addresses()
                step = CONNECTING
                transport = await self._connect(addresses)
                if self._tls is None:
                    return transport, None
                step = TLS_HANDSHAKE
                try:
                    tls = TlsStream(self._tls, self._host.removesuffix("."))
                    await tls.do_handshake(transport)
                except BaseException:
                    transport.abort()
                    raise
                return transport, tls
        except Exception as error:
            raise cannot_connect(error, f"{self._host}:{self._port}", step) from error

    def close(self) -> None:
        """End a look-up that nobody waits for any more."""
        if self._look_up is not None:
            self._look_up.cancel()

    async def _connect(self, addresses: list[Any]) -> asyncio.Transport:
        loop = asyncio.get_running_loop()
        first = self._turn % len(addresses)
        self._turn += 1
        connection = await start_connection(
            [*addresses[first:], *addresses[:first]],
            happy_eyeballs_delay=NEXT_ADDRESS_S,
            loop=loop,
            socket_factory=self._sources.socket,
        )
        try:
            transport, _ = await loop.create_connection(asyncio.Protocol, sock=connection)
        except BaseException:
            with contextlib.suppress(OSError):  # uvloop may have closed it
                connection.close()
            raise
        return transport

    async def _addresses(self) -> list[Any]:
        """Look the name up, unless that has been done or is under way; a failed look-up is
        repeated.
        """
        look_up = self._look_up
        if look_up is None or (
            look_up.done() and (look_up.cancelled() or look_up.exception() is not None)
        ):
            flags = socket.AI_ADDRCONFIG  # a name only in the families that this machine has
            with contextlib.suppress(ValueError):
                ipaddress.ip_address(self._host)
                flags = socket.AI_NUMERICHOST
            look_up = self._look_up = asyncio.ensure_future(
                asyncio.get_running_loop().getaddrinfo(
                    self._host, self._port, type=socket.SOCK_STREAM, flags=flags
                )
            )
            look_up.add_done_callback(_take_error)
        addresses: list[Any] = await asyncio.shield(look_up)
        return addresses


def _take_error(look_up: "asyncio.Future[Any]") -> None:
    """Take the error of a look-up that nobody may be waiting for any more, so that it is not
    logged.
    """
    if not look_up.cancelled():
        look_up.exception()


class TlsStream(asyncio.Protocol):
    """One TLS session without a socket: an asyncio protocol during the handshake, afterwards only a
    cipher.

    Args:
        context: The context of the client.
        host: Name or address of the server, as the certificate must have it.

    Attributes:
        is_partial: Whether the bytes decrypted last end inside a TLS record.
        bytes_read: Bytes of the handshake that were received.
        closed: Whether the session has ended.
        error: What it has ended by; None: the server has closed it, or it goes on.
    """

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._handshake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.bytes_read = 0
        self.is_partial = False
        self.closed = False
        self.error: ssl.SSLError | None = None

    async def do_handshake(self, transport: asyncio.Transport) -> None:
        """Open the session over a transport, which has another protocol afterwards.

        Raises:
            ssl.SSLError: The server has no TLS, or its certificate is not accepted.
            OSError: The connection was closed.
        """
        self._transport = transport
        transport.set_protocol(self)
        self._continue_handshake()
        await self._handshake

    def encrypt(self, data: bytes) -> bytes:
        """Encrypt bytes to send."""
        self._session.write(data)
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """Decrypt received bytes, as far as they are whole TLS records.

        Bytes that are no TLS, and an alert, close the session; what came before them is decrypted.
        """
        self._incoming.write(data)
        self.is_partial = False
        parts = []
        try:
            while part := self._session.read(READ_BYTES):
                parts.append(part)
                if not self._session.pending() and not self._incoming.pending:
                    break
            else:  # as `SSLObject` tells the end
                self.closed = True
        except ssl.SSLWantReadError:
            # or the last record had no data: then a time is called uncertain that is exact
            self.is_partial = True
        except ssl.SSLError as error:
            self.closed = True
            self.error = error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def take_reply(self) -> bytes:
        """Return what the session itself has to send, such as an answer to a new key; mostly
        nothing.
        """
        return self._outgoing.read() if self._outgoing.pending else b""

    # What asyncio calls during the handshake.

    def data_received(self, data: bytes) -> None:
        """Continue the handshake."""
        self.bytes_read += len(data)
        self._incoming.write(data)
        if not self._handshake.done():
            self._continue_handshake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the handshake."""
        if not self._handshake.done():
            how = "closed" if exc is None else f"lost ({exc})"
            self._handshake.set_exception(
                ConnectionResetError(f"connection {how} inside the TLS handshake")
            )

    def _continue_handshake(self) -> None:
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._handshake.set_exception(error)
        else:
            self._handshake.set_result(None)
        self._transport.write(self._outgoing.read())


def client_context(*, verify: bool) -> ssl.SSLContext:
    """Make a TLS context for HTTP/1.1.

    Args:
        verify: Whether the certificate must be trusted and belong to the host; else any is
            accepted.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class CannotConnect(Exception):
    """No connection could be opened; the text says why.

    Attributes:
        outcome: What that makes of a request.
    """

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


def cannot_connect(error: Exception, address: str, step: str) -> CannotConnect:
    """Return the error to raise for one that was met.

    Args:
        error: The error.
        address: Host and port of the server.
        step: LOOKING_UP, CONNECTING or TLS_HANDSHAKE.
    """
    # For several addresses, aiohappyeyeballs puts the errnos into the text only.
    numbers = set(map(int, re.findall(r"\[Errno (\d+)\]", str(error))))
    if (number := getattr(error, "errno", None)) is not None:
        numbers = {number}
    match error:
        case (
            socket.gaierror() | UnicodeError()
        ):  # of a name with a label of more than 63 characters
            reason = getattr(error, "strerror", None) or "no valid name"
            return CannotConnect(Outcome.DNS_ERROR, f"no connection to {address} ({reason})")
        case ssl.SSLCertVerificationError():
            reason = f"{getattr(error, 'verify_message', '') or error}; see --insecure"
            return CannotConnect(Outcome.TLS_ERROR, f"the certificate is not trusted ({reason})")
        case ssl.SSLError():
            reason = (
                f"{getattr(error, 'reason', '') or error}; if the server has no TLS, write http://"
            )
            return CannotConnect(Outcome.TLS_ERROR, f"no TLS with {address} ({reason})")
        case TimeoutError() if step == LOOKING_UP:
            return CannotConnect(
                Outcome.CONNECT_TIMEOUT, f"no address of {address} within --connect-timeout"
            )
        case TimeoutError() if step == TLS_HANDSHAKE:
            return CannotConnect(
                Outcome.CONNECT_TIMEOUT, "the TLS handshake took longer than --connect-timeout"
            )
        case TimeoutError():
            # The system has a limit, too.
            how_long = "in time" if error.errno else "within --connect-timeout"
            return CannotConnect(Outcome.CONNECT_TIMEOUT, f"no connection to {address} {how_long}")
        case OSError() if numbers:
            outcome = Outcome.CLIENT_ERROR if numbers & OUR_LIMITS else Outcome.REFUSED
            reasons = "; ".join(map(os.strerror, sorted(numbers)))
            goal = "TLS with" if step == TLS_HANDSHAKE else "connection to"
            return CannotConnect(outcome, f"no {goal} {address} ({reasons})")
        case OSError():
            return CannotConnect(Outcome.REFUSED, str(error))
    return CannotConnect(Outcome.CLIENT_ERROR, str(error) or type(error).__name__)
