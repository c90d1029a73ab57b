"""The server's end of a TLS session, in memory: what is sent, and when, is for the test to say."""

import contextlib
import ssl


class TlsSession:
    """One session of a server.

    Args:
        context: Its context.

    Attributes:
        is_open: Whether the handshake is over.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_open = False

    def shake(self, data: bytes) -> bytes:
        """Go on with the handshake, and return what it answers.

        Raises:
            ssl.SSLError: It has failed; `pending` has the alert.
        """
        self._incoming.write(data)
        with contextlib.suppress(ssl.SSLWantReadError):
            self._session.do_handshake()
            self.is_open = True
        return self.pending()

    def pending(self) -> bytes:
        """Return what is left to send."""
        return self._outgoing.read()

    def encrypt(self, data: bytes) -> bytes:
        """Encrypt bytes, up to 16 KiB as one record."""
        self._session.write(data)
        return self.pending()

    def decrypt(self, data: bytes) -> bytes:
        """Decrypt what the client has sent, which is whole records."""
        self._incoming.write(data)
        found = b""
        while self._incoming.pending or self._session.pending():
            found += self._session.read(1 << 20)
        return found

    def close(self) -> bytes:
        """End the session, and return the bytes that say so."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self._session.unwrap()
        return self.pending()
