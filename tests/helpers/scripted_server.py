"""Servers that do exactly what a test says, on loopback.

For tests whose server waits for something of the test's own, or answers one request in view of the
others: a fault of `loadgen.testing.faulty` knows only its own request.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from loadgen.engines.sim.http1 import Request, RequestReader, whole
from loadgen.testing.replies import models
from tests.helpers.response_bytes import answer, streamed

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
READ_BYTES = 1 << 16
GOOD = streamed(answer("Hello", " world"))


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """One request; None at the end of the connection.

    Nothing is sent ahead here: what follows it would be lost.
    """
    requests = RequestReader()
    try:
        while (request := requests.next_request()) is None:
            if not (data := await reader.read(READ_BYTES)):
                return None
            requests.feed(data)
    except ConnectionError:
        return None
    return request


def answering(*replies: bytes) -> Script:
    """Answers the requests of each connection with these bytes in turn, the last for ever."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0
        while await read_request(reader):
            writer.write(replies[min(number, len(replies) - 1)])
            await writer.drain()
            number += 1

    return script


def answering_each(reply: Callable[[Request], bytes]) -> Script:
    """Answers each request with `reply`."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await read_request(reader):
            writer.write(reply(request))
            await writer.drain()

    return script


def chatting(
    reply: Callable[[Request], bytes], after_s: float = 0.0, *, listed: Sequence[str] = ("m",)
) -> Script:
    """Lists its models, and answers every request that is not a GET with `reply`, after
    `after_s` seconds.
    """

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while ask := await read_request(reader):
            if ask.method == "GET":
                writer.write(whole(200 if ask.path == "/v1/models" else 404, models(*listed)))
            else:
                await asyncio.sleep(after_s)
                writer.write(reply(ask))
            await writer.drain()

    return script


@contextlib.asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve with `script` per connection; yields the base URL.

    Every connection is closed at the end.
    """
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


@contextlib.asynccontextmanager
async def closing_at_once() -> AsyncIterator[str]:
    """The URL of a port where every connection is accepted and closed: a proxy without a server
    behind it.
    """

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
