"""Scraper: a process that asks servers of themselves once a second, so that no process that measures has to.

`python -m loadgen.runner.metrics_scraper_main` reads one message, an Order, then the lines `first` and `last`, and
answers None to each once it is done. In between it asks every second. What it hears it writes down at once: it outlives
every process.
"""

import asyncio
import contextlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import orjson

from loadgen.errors import Unreachable
from loadgen.metrics.server.parser import Unreadable, read
from loadgen.metrics.server.series import FIRST, LAST, TICK, Scrape, Source
from loadgen.metrics.server.telemetry import FILE_NAME
from loadgen.util import child_process, http_client
from loadgen.util.clock import now_ns
from loadgen.util.gpus import Nvml
from loadgen.util.tasks import background_tasks

PERIOD_S = 1.0
PATIENCE_S = 2.0  # for one answer
SETTLE_S = 0.1
MOST_LAST = 5  # a server may count what has ended a moment after it has said so
NICENESS = 10  # whoever measures, or is measured, goes first


@dataclass(frozen=True)
class Order:
    """Who is asked, in which folder what they say is written, and whether this machine's GPUs are read too.

    Attributes:
        sources: Who is asked.
        folder: Where what they say is written.
        gpus: Whether this machine's GPUs are read.
        missing: Base URLs of targets that say nothing, while others do.
    """

    sources: tuple[Source, ...]
    folder: Path
    gpus: bool = False
    missing: tuple[str, ...] = ()


class Scraper:
    """Asks all sources at once, time after time.

    Args:
        sources: Who is asked.
        nvml: This machine's GPUs, if they are to be read.
        file: Where each answer becomes a line.
    """

    def __init__(self, sources: tuple[Source, ...], nvml: Nvml | None, file: BinaryIO) -> None:
        self._sources, self._nvml, self._file = sources, nvml, file

    async def ask(self, moment: str) -> list[Scrape]:
        """Ask everyone once, and write down what they say."""
        asked_ns = now_ns()
        gpus = self._nvml.read() if self._nvml else []
        scrapes = await asyncio.gather(*(scrape(source, moment) for source in self._sources))
        lines = [one.to_dict() for one in scrapes] + ([{"asked_ns": asked_ns, "gpus": gpus}] if gpus else [])
        self._file.write(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        return scrapes

    async def every_second(self) -> None:
        """Ask on a grid of whole seconds from now on; what an answer outlasts of it is left out."""
        due_s = time.monotonic()
        while True:
            due_s += PERIOD_S * max(1, -((due_s - time.monotonic()) // PERIOD_S))
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            await self.ask(TICK)

    async def last(self) -> None:
        """Ask until every server says that it has nothing more to do, but a few times at most."""
        for _ in range(MOST_LAST):
            scrapes = await self.ask(LAST)
            if not any(one.values.get(level) for one in scrapes for level in ("running", "waiting")):
                return
            await asyncio.sleep(SETTLE_S)


async def ask(source: Source) -> http_client.Reply:
    """What a source answers.

    Raises:
        Unreachable: Nothing, or nothing in time.
    """
    return await http_client.get(source.url, headers=source.headers, verify_tls=source.verify_tls, timeout_s=PATIENCE_S)


async def scrape(source: Source, moment: str) -> Scrape:
    """Ask one source once; whatever it does, it is a scrape."""
    asked_ns, failed, reading = now_ns(), None, None
    try:
        reply = await ask(source)
        answered_ns = now_ns()
        if reply.status == 200:
            reading = read(reply.body)
        else:
            failed = f"status {reply.status}"
    except Unreachable:
        answered_ns, failed = now_ns(), "no answer"
    except Unreadable:
        failed = "unreadable"
    told = vars(reading) if reading else {}
    return Scrape(
        url=source.url,
        target=source.target,
        moment=moment,
        asked_ns=asked_ns,
        answered_ns=answered_ns,
        failed=failed,
        **told,
    )


async def main() -> None:
    """Carry out the order on standard input."""
    # Imported now, or the first scrape would take as long: a third of a second.
    import aiohttp  # noqa: F401
    import prometheus_client.parser  # noqa: F401

    os.nice(NICENESS)
    commands = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    line = await commands.readline()
    if not line:
        return
    order: Order = child_process.decode(line)
    if await commands.readline():
        try:
            with contextlib.suppress(BrokenPipeError):  # nobody is left to be told
                await obey(order, commands)
        except OSError as error:
            print(f"loadgen: what the server says of itself is not kept: {error.strerror}", file=sys.stderr)


async def obey(order: Order, commands: asyncio.StreamReader) -> None:
    """Ask at once, every second, and for the last time when told to; or no more, once there is nobody left to tell.

    Raises:
        OSError: What is heard cannot be written.
    """
    with (
        Nvml.opened() if order.gpus else contextlib.nullcontext() as nvml,
        open(order.folder / FILE_NAME, "ab", buffering=0) as file,  # noqa: ASYNC230 - nothing else waits here
    ):
        scraper = Scraper(order.sources, nvml, file)
        await scraper.ask(FIRST)
        tell()
        async with background_tasks(scraper.every_second()):
            if not await commands.readline():
                return
        await scraper.last()
        tell()


def tell() -> None:
    """Say to the process that started this one that it is done."""
    sys.stdout.buffer.write(child_process.encode(None))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(main())
