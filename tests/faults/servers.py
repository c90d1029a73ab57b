"""Servers that do exactly what a test says, on loopback."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from tests.wire.bytes_of import answer, streamed

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
GOOD = streamed(answer("Hello", " world"))


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """One request, head and body; empty at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return head + await reader.readexactly(length)


def answering(*replies: bytes) -> Script:
    """Answers the requests of each connection with these bytes in turn, the last for ever."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0
        while await read_request(reader):
            writer.write(replies[min(number, len(replies) - 1)])
            await writer.drain()
            number += 1

    return script


@contextlib.asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve with `script` per connection; yields the base URL. Every connection is closed at the end."""
    running: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await script(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            running.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        if running:
            await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()
