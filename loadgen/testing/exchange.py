"""Exchange: one connection of a test server, HTTP/1.1, one request at a time."""

import asyncio
import socket
import struct
from typing import cast

from loadgen.errors import BadInput
from loadgen.testing.ask import Ask
from loadgen.testing.replies import JSON, error_body, whole
from loadgen.util.clock import now_ns

NO_LINGER = struct.pack("ii", 1, 0)  # on, 0 s: the kernel ends the connection with a reset


class Exchange(asyncio.Protocol):
    """Reads requests, and hands each to `asked` once the one before has been answered."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._received = bytearray()
        self._busy = False

    def asked(self, ask: Ask) -> None:
        """Answer: with `reply` at once, or by other means and then `answered`. BadInput becomes a 400."""
        raise NotImplementedError

    def reply(self, body: bytes, *headers: str, status: int = 200, kind: str = JSON) -> None:
        """Answer the request in one piece."""
        self.transport.write(whole(status, body, *headers, kind=kind))
        self.answered()

    def answered(self) -> None:
        """The response is whole: go on to the next request, in a later turn of the loop."""
        self._busy = False
        if self._received:
            asyncio.get_running_loop().call_soon(lambda: self._next(now_ns()))

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; asyncio and uvloop have set TCP_NODELAY."""
        # uvloop's transports have the methods of asyncio's, but not the type.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Take in bytes, and answer the request they complete."""
        at_ns = now_ns()
        self._received += data
        self._next(at_ns)

    def _next(self, at_ns: int) -> None:
        if self._busy or self.transport.is_closing():
            return
        try:
            ask = Ask.take(self._received, at_ns)
        except BadInput as wrong:
            self._refuse(wrong, "Connection: close")
            self.transport.close()
            return
        if ask is None:
            return
        self._busy = True
        try:
            self.asked(ask)
        except BadInput as wrong:
            self._refuse(wrong)

    def _refuse(self, wrong: BadInput, *headers: str) -> None:
        self.reply(error_body(str(wrong), 400, wrong.field), *headers, status=400)
