"""Connector: opens connections to the server of a target, with TLS.

TLS goes over a connection that is read and written elsewhere, so that the kernel's stamps belong to
its bytes.
"""

import asyncio
import ssl
from typing import NamedTuple

from loadgen.errors import FLAGS
from loadgen.util.clock import now_ns
from loadgen.util.dialer import Dialer, Reached, client_problem

READ_BYTES = 1 << 18


class Opened(NamedTuple):
    """A connection.

    Attributes:
        transport: Its transport, with a protocol that does nothing.
        tls: Its TLS session; None: it has none.
        bytes_read: How many bytes were read from its socket: the answer of a proxy, the handshake.
        parts: How long the look-up, the connection and the TLS handshake took, ns, as those of a
            `Record`.
    """

    transport: asyncio.Transport
    tls: "TlsStream | None"
    bytes_read: int
    parts: dict[str, int]


class Connector(Dialer):
    """Opens connections to one server, and TLS sessions over them, for the compiled reader."""

    async def connect(self) -> Opened:
        """Open a connection.

        Raises:
            CannotConnect: There is no connection.
        """
        return await self.open(self._begin)

    async def _begin(self, reached: Reached) -> Opened:
        parts = {"dns": reached.dns_ns, "tcp": reached.tcp_ns, "tls": 0}
        transport, _ = await self.transport(reached.socket, asyncio.Protocol)
        if self.tls is None:
            return Opened(transport, None, reached.bytes_read, parts)
        begun_ns = now_ns()
        try:
            tls = TlsStream(self.tls, self.tls_name)
            await tls.do_handshake(transport)
        except BaseException:
            transport.abort()
            raise
        parts["tls"] = now_ns() - begun_ns
        return Opened(transport, tls, reached.bytes_read + tls.bytes_read, parts)


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
        self.error: OSError | None = None

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
            problem = client_problem(error)
            self.error = error if problem is None else ConnectionError(FLAGS.text(problem))
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
