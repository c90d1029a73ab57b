"""Server connection: one connection of a test server, HTTP/1.1, one request at a time."""

import asyncio
import socket
import struct
from typing import cast

from loadgen.engines.sim.http1 import HttpError, RequestReader
from loadgen.errors import BadInput
from loadgen.testing.replies import JSON, error_body, whole
from loadgen.testing.request import Request
from loadgen.util.clock import now_ns

NO_LINGER = struct.pack("ii", 1, 0)  # on, 0 s: the kernel ends the connection with a reset


class ServerConnection(asyncio.Protocol):
    """Reads requests, and calls `handle` with each one after the previous one is answered."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._reader = RequestReader(Request)
        self._busy = False

    def handle(self, request: Request) -> None:
        """Answer a request with `reply`, or by other means and then `finish`; a BadInput becomes a response 400."""
        raise NotImplementedError

    def reply(self, body: bytes, *headers: str, status: int = 200, kind: str = JSON) -> None:
        """Answer the request with one response."""
        self.transport.write(whole(status, body, *headers, kind=kind))
        self.finish()

    def finish(self) -> None:
        """Note that the response is complete, and read the next request in a later turn of the event loop."""
        self._busy = False
        if self._reader.has_bytes:
            asyncio.get_running_loop().call_soon(lambda: self._read_next(now_ns()))

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; asyncio and uvloop have set TCP_NODELAY."""
        # uvloop's transports have the methods of asyncio's, but not the type.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Take in bytes, and handle the request that they complete."""
        at_ns = now_ns()
        try:
            self._reader.feed(data)
        except HttpError as error:
            self._refuse_and_close(error)
        else:
            self._read_next(at_ns)

    def _read_next(self, at_ns: int) -> None:
        if self._busy or self.transport.is_closing():
            return
        try:
            request = self._reader.next_request(at_ns)
        except HttpError as error:
            self._refuse_and_close(error)
            return
        if request is None:
            return
        self._busy = True
        try:
            self.handle(request)
        except BadInput as error:
            self.reply(error_body(str(error), 400, error.field), status=400)

    def _refuse_and_close(self, error: HttpError) -> None:
        body = error_body(error.message, error.status, error.field)
        self.transport.write(whole(error.status, body, "Connection: close"))
        self.transport.close()
