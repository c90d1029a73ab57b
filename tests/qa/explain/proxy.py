"""A proxy before a test server that plants one fault in the way: `python -m tests.qa.explain.proxy
PORT FAULT VALUES...`; it prints where it listens, and ends with its parent.

delay MS: a request is held so long. flush MS: answers pass at multiples of so long.
freeze SHARE MS: in each 100 ms an answer is held for MS with this probability.
freeze_all S MS: every S seconds all answers are held for MS.
tls MS: TLS, a handshake that begins so late, and a connection for each request.
"""

import asyncio
import contextlib
import random
import socket
import ssl
import sys
import time

import trustme

BUFFER = 1 << 16
TICK_S = 0.1
END = b"0\r\n\r\n"


class Fault:
    """One fault, with its values.

    Args:
        name: As the module's first lines name it.
        values: Its values; ms, s or a share.
    """

    def __init__(self, name: str, values: list[float]) -> None:
        self.name, self.values = name, values
        self._random = random.Random(7)

    async def hold_request(self) -> None:
        if self.name == "delay":
            await asyncio.sleep(self.values[0] / 1e3)

    async def hold_answer(self, drawn: list[int]) -> None:
        """Hold a part of an answer; `drawn` has the tick for which was drawn last."""
        now = time.monotonic()
        match self.name:
            case "flush":
                period_s = self.values[0] / 1e3
                await asyncio.sleep(period_s - now % period_s)
            case "freeze":
                if int(now / TICK_S) != drawn[0]:
                    drawn[0] = int(now / TICK_S)
                    if self._random.random() < self.values[0]:
                        await asyncio.sleep(self.values[1] / 1e3)
            case "freeze_all":
                since_s = now % self.values[0]
                if since_s < self.values[1] / 1e3:
                    await asyncio.sleep(self.values[1] / 1e3 - since_s)


async def serve(port: int, fault: Fault) -> None:
    """Pass connections on to `port`."""

    async def up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(BUFFER):
            await fault.hold_request()
            writer.write(data)

    async def down(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        drawn = [int(time.monotonic() / TICK_S)]
        while data := await reader.read(BUFFER):
            await fault.hold_answer(drawn)
            writer.write(data)
            if fault.name == "tls" and data.endswith(END):
                return

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
        way_up = asyncio.ensure_future(up(reader, server_writer))
        with contextlib.suppress(OSError):
            await asyncio.wait(
                [way_up, asyncio.ensure_future(down(server_reader, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
        for end in (writer, server_writer):
            end.close()

    async def accepted(client: socket.socket) -> None:
        is_tls = fault.name == "tls"
        if is_tls:
            await asyncio.sleep(fault.values[0] / 1e3)
        reader = asyncio.StreamReader()
        await loop.connect_accepted_socket(
            lambda: asyncio.StreamReaderProtocol(reader, connected),
            client,
            ssl=context if is_tls else None,
        )

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    loop = asyncio.get_running_loop()
    tasks = set()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        scheme = "https" if fault.name == "tls" else "http"
        print(f"listening on {scheme}://127.0.0.1:{server.getsockname()[1]}", flush=True)
        while True:
            client, _ = await loop.sock_accept(server)
            tasks.add(task := asyncio.create_task(accepted(client)))
            task.add_done_callback(tasks.discard)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Fault(sys.argv[2], [float(x) for x in sys.argv[3:]])))
