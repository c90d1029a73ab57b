"""A server process that plants a way to fail: `python -m tests.helpers.planted_server WAY SECONDS`.

It prints its port. The ways:

- `hang`: after 20 answers no request is answered, and the list of models is.
- `mute`: after 20 answers nothing is answered, not even the list of models.
- `one`: the fifth stream stops after three tokens; the others go on.
- `slow-death`: each token takes twice as long as the one before it.
- `prefill`: the first token takes SECONDS of a busy processor, one request after another.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator

TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":" a"},"finish_reason":null}]}\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
MODELS = b'{"object":"list","data":[{"id":"planted","object":"model"}]}'
TOKENS = 8
ANSWERS_FIRST = 20
NEVER_S = 3600.0


class PlantedServer:
    """Answers chats until the planted way begins.

    Args:
        way: One of those of the module.
        seconds: Of a prefill.
    """

    def __init__(self, way: str, seconds: float) -> None:
        self._way = way
        self._seconds = seconds
        self._chats = 0
        self._computing = asyncio.Lock()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, which has one request."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"POST"):
                self._chats += 1
                writer.write(HEAD)
                async for event in self._stream(self._chats):
                    writer.write(event)
                    await writer.drain()
            else:
                await self._answer_get(head, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer_get(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        if self._way == "mute" and self._chats > ANSWERS_FIRST:
            await asyncio.sleep(NEVER_S)
        is_list = head.startswith(b"GET /v1/models")
        body = MODELS if is_list else b""
        status = b"200 OK" if is_list else b"404 Not Found"
        writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))

    async def _stream(self, number: int) -> AsyncIterator[bytes]:
        if self._way in ("hang", "mute") and number > ANSWERS_FIRST:
            await asyncio.sleep(NEVER_S)
        if self._way == "prefill":
            async with self._computing:
                await asyncio.to_thread(_compute, self._seconds)
        for token in range(TOKENS):
            if self._way == "one" and number == 5 and token == 3:
                await asyncio.sleep(NEVER_S)
            if self._way == "slow-death":
                await asyncio.sleep(0.05 * 2**token * number)
            yield TOKEN
            await asyncio.sleep(0.01)
        yield END


def _compute(seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        pass


async def main(way: str, seconds: float) -> None:
    """Serve until the process is ended."""
    server = await asyncio.start_server(PlantedServer(way, seconds).serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
