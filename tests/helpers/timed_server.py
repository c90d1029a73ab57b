"""A server in a thread of its own that notes when it wrote each token.

Unlike the metronome it knows TLS and gzip.
"""

import asyncio
import contextlib
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadgen.core.record import Record
from loadgen.engines.sim.http1 import LAST_CHUNK, Request, chunk, whole
from loadgen.testing.faults.responses import GZIP
from loadgen.testing.replies import DONE, STREAM, GoodAnswer, models
from loadgen.testing.truth import Int64s
from loadgen.util.clock import now_ns
from tests.helpers.scripted_server import read_request, serving

JOIN_S = 10.0
Packer = Callable[[bytes], bytes]


@dataclass(frozen=True)
class TokenTimes:
    """When the tokens of a run were written and when they came, one entry each, CLOCK_MONOTONIC
    ns.
    """

    write: Int64s  # before the server wrote it,
    written: Int64s  # and after
    earliest: Int64s
    arrival: Int64s
    read: Int64s


class TimedServer:
    """Answers each POST with the tokens that it asks for.

    Args:
        gap_s: Time before each token, s.
        zipped: Whether answers are compressed, token by token.

    Attributes:
        url: Scheme, host and port.
        times: By the number of a request: for each token the time before its write and after it,
            CLOCK_MONOTONIC ns.
    """

    def __init__(self, gap_s: float, *, zipped: bool) -> None:
        self.url = ""
        self.times: dict[int, list[tuple[int, int]]] = {}
        self._gap_s, self._zipped = gap_s, zipped

    async def script(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, and close it."""
        with contextlib.closing(writer):
            while ask := await read_request(reader):
                if ask.method == "GET":
                    writer.write(whole(200 if ask.path == "/v1/models" else 404, models("timed")))
                else:
                    await self._answer(ask, writer)
                await writer.drain()

    async def _answer(self, ask: Request, writer: asyncio.StreamWriter) -> None:
        answer, pack = GoodAnswer.to(ask), _packer(zipped=self._zipped)
        self.times[ask.index or 0] = times = []
        writer.write((GZIP if self._zipped else STREAM) + chunk(pack(answer.role)))
        for token in answer.tokens:
            await asyncio.sleep(self._gap_s)
            piece, before_ns = chunk(pack(token)), now_ns()
            writer.write(piece)
            times.append((before_ns, now_ns()))
        await asyncio.sleep(self._gap_s)
        writer.write(chunk(pack(answer.finish + answer.usage + DONE)) + LAST_CHUNK)

    def compared(self, records: list[Record]) -> TokenTimes:
        """Look up when the tokens of a run were written."""
        columns: list[tuple[Int64s, ...]] = []
        for record in records:
            write, written = np.array(self.times[record.index], dtype=np.int64).T
            stamps = np.array(record.stamps)
            earliest = stamps if record.earliest is None else np.array(record.earliest)
            columns.append((write, written, earliest, stamps, np.array(record.read_times)))
        return TokenTimes(*map(np.concatenate, zip(*columns, strict=True)))


def _packer(*, zipped: bool) -> Packer:
    """What turns events into bytes of the body that can be decoded at once."""
    if not zipped:
        return bytes
    packer = zlib.compressobj(wbits=31)

    def pack(data: bytes) -> bytes:
        return packer.compress(data) + packer.flush(
            zlib.Z_FINISH if data.endswith(DONE) else zlib.Z_SYNC_FLUSH
        )

    return pack


@contextlib.contextmanager
def timed_server(
    gap_s: float = 0.005,
    *,
    zipped: bool = False,
    tls: ssl.SSLContext | None = None,
    path: Path | None = None,
) -> Iterator[TimedServer]:
    """Serve for the length of the block, on loopback and, where `path` is given, on that Unix
    socket.
    """
    server, listening = TimedServer(gap_s, zipped=zipped), threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with contextlib.AsyncExitStack() as stack:
            server.url = await stack.enter_async_context(serving(server.script, tls))
            if path is not None:
                await stack.enter_async_context(
                    await asyncio.start_unix_server(server.script, path)
                )
            listening.set()
            await stop.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert listening.wait(JOIN_S)
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(JOIN_S)
        assert not thread.is_alive()
