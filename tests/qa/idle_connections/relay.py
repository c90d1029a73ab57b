"""A way to a server that takes its time: bytes and closes arrive so much later, in both directions.

python -m tests.qa.idle_connections.relay PORT DELAY_MS
"""

import asyncio
import contextlib
import sys


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float
) -> None:
    """Pass on what is read, in order and each piece `delay_s` later, its end too."""
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    now = asyncio.get_running_loop().time

    async def deliver() -> None:
        while True:
            due, data = await under_way.get()
            await asyncio.sleep(due - now())
            if not data:
                return
            writer.write(data)

    delivery = asyncio.create_task(deliver())
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            under_way.put_nowait((now() + delay_s, data))
    under_way.put_nowait((now() + delay_s, b""))
    await delivery
    writer.close()


async def _serve(port: int, delay_s: float) -> None:
    async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_carry(reader, up_writer, delay_s), _carry(up_reader, writer, delay_s))

    server = await asyncio.start_server(between, "127.0.0.1", 0, backlog=4096)
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), float(sys.argv[2]) / 1e3))
