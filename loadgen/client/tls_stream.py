"""TLS over a connection that is read and written elsewhere, so that the kernel's stamps belong to its bytes."""

import asyncio
import ssl

READ_BYTES = 1 << 18


def client_context(*, verify: bool) -> ssl.SSLContext:
    """Make a TLS context for HTTP/1.1.

    Args:
        verify: Whether the certificate must be trusted and belong to the host; else any is accepted.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class TlsStream(asyncio.Protocol):
    """One TLS session without a socket: an asyncio protocol while hands are shaken, afterwards only a cipher.

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
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._shaken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.bytes_read = 0
        self.is_partial = self.closed = False
        self.error: ssl.SSLError | None = None

    async def shake_hands(self, transport: asyncio.Transport) -> None:
        """Open the session over a transport, which has another protocol afterwards.

        Raises:
            ssl.SSLError: The server has no TLS, or its certificate is not accepted.
            OSError: The connection was closed.
        """
        self._transport = transport
        transport.set_protocol(self)
        self._shake()
        await self._shaken

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
            self.is_partial = True  # or the last record had no data: then a time is called uncertain that is exact
        except ssl.SSLError as error:
            self.closed, self.error = True, error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def take_reply(self) -> bytes:
        """Return what the session itself has to send, such as an answer to a new key; mostly nothing."""
        return self._outgoing.read() if self._outgoing.pending else b""

    # What asyncio calls while hands are shaken.

    def data_received(self, data: bytes) -> None:
        """Go on with the handshake."""
        self.bytes_read += len(data)
        self._incoming.write(data)
        if not self._shaken.done():
            self._shake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the handshake."""
        if not self._shaken.done():
            how = "closed" if exc is None else f"lost ({exc})"
            self._shaken.set_exception(ConnectionResetError(f"connection {how} inside the TLS handshake"))

    def _shake(self) -> None:
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._shaken.set_exception(error)
        else:
            self._shaken.set_result(None)
        self._transport.write(self._outgoing.read())
