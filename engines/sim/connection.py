"""Server connection: one connection of the simulator or of a test server, HTTP/1.1, one request
at a time.
"""

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import Callable
from typing import cast

from loadgen.engines.sim.http1 import (
    CONTINUE,
    JSON,
    Request,
    RequestError,
    RequestReader,
    error_body,
    whole,
)
from loadgen.errors import BadInput, LoadgenError
from loadgen.util.clock import now_ns

BACKLOG = 16384  # a load generator may open all its connections at once
NO_LINGER = struct.pack("ii", 1, 0)  # on, 0 s: the kernel ends the connection with a reset


class ServerConnection(asyncio.Protocol):
    """Reads requests, and calls `handle` with each one after the previous one is answered.

    Attributes:
        transport: The transport to the client.
        keep_alive: Whether the connection stays open after the answer to the current request.
    """

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.keep_alive = True
        self._reader = RequestReader()
        self._busy = False

    @property
    def fields(self) -> tuple[str, ...]:
        """Header lines that every response has."""
        return () if self.keep_alive else ("connection: close",)

    def handle(self, request: Request) -> None:
        """Answer a request with `reply`, or by other means and then `finish`.

        Raises:
            RequestError: The request is answered with this error.
            BadInput: The request is answered with status 400.
        """
        raise NotImplementedError

    def reply(self, body: bytes, *fields: str, status: int = 200, kind: str = JSON) -> None:
        """Answer the request with one response.

        Args:
            body: The body.
            fields: Header lines besides those of every response.
            status: The HTTP status.
            kind: Content type of the body.
        """
        self.transport.write(whole(status, body, *self.fields, *fields, kind=kind))
        self.finish()

    def refuse(self, error: RequestError) -> None:
        """Answer the request with an error."""
        fields = [f"retry-after: {error.retry_after_s}"] if error.retry_after_s else []
        self.reply(
            error_body(error.message, error.status, error.param, error.kind),
            *fields,
            status=error.status,
        )

    def finish(self) -> None:
        """Note that the response is complete; read the next request in a later turn of the loop,
        or close.
        """
        self._busy = False
        if not self.keep_alive:
            self.transport.close()
        elif self._reader.has_bytes:
            asyncio.get_running_loop().call_soon(lambda: self._read_next(now_ns()))

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        self.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER
        )
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
        except RequestError as error:
            self.keep_alive = False
            self.refuse(error)
        else:
            self._read_next(at_ns)

    def _read_next(self, at_ns: int) -> None:
        if self._busy or self.transport.is_closing():
            return
        try:
            request = self._reader.next_request(at_ns)
        except RequestError as error:  # where the next request begins is unknown
            self.keep_alive = False
            self.refuse(error)
            return
        if request is None:
            if self._reader.continue_wanted:
                self.transport.write(CONTINUE)
                self._reader.continue_wanted = False
            return
        self._busy = True
        self.keep_alive = request.keep_alive
        try:
            self.handle(request)
        except BadInput as error:
            self.refuse(RequestError(400, str(error), param=error.field))
        except RequestError as error:
            self.refuse(error)


async def listen(
    protocol: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
) -> asyncio.Server:
    """Listen in the running event loop.

    Args:
        protocol: Returns the protocol of a new connection.
        host: Address to listen on.
        port: Port to listen on; 0: a free one.
        tls: Context to serve https with; None: http.

    Raises:
        LoadgenError: The address cannot be used.
    """
    try:
        return await asyncio.get_running_loop().create_server(
            protocol, host, port, backlog=BACKLOG, ssl=tls
        )
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        problem = f"cannot listen on {host}:{port}: {reason}"
        raise LoadgenError(f"{problem}; give another --host or --port (0: a free one)") from error
