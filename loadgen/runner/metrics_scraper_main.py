"""The metrics scraper process: scrapes server metrics once a second, so that no measuring process has to.

`python -m loadgen.runner.metrics_scraper_main` reads messages, a ScrapeOrder each. After it come the lines `first`
and `last`; it answers None to each once it is done, and scrapes every second in between. It writes each scrape to a
file at once, so that scrapes outlive every process.
"""

import asyncio
import contextlib
import os
import sys
import time
from typing import BinaryIO

import orjson

from loadgen.errors import Unreachable
from loadgen.metrics.server.parser import Unreadable, read
from loadgen.metrics.server.scrape_order import ScrapeOrder
from loadgen.metrics.server.series import FIRST, LAST, TICK, Scrape, Source
from loadgen.metrics.server.telemetry import FILE_NAME
from loadgen.util import child_process, http_client
from loadgen.util.accelerators import Nvml
from loadgen.util.clock import now_ns
from loadgen.util.tasks import background_tasks

PERIOD_S = 1.0
PATIENCE_S = 2.0  # for one answer
SETTLE_S = 0.1
NICENESS = 10  # the measuring processes, and the server, go first


class Scraper:
    """Scrapes all sources at once, time after time.

    Args:
        sources: Where the servers' metrics are.
        nvml: This machine's GPUs, if they are to be read.
        file: Where to write each scrape, as a line.
        last_scrapes: As in a `ScrapeOrder`.
    """

    def __init__(self, sources: tuple[Source, ...], nvml: Nvml | None, file: BinaryIO, last_scrapes: int) -> None:
        self._sources = sources
        self._nvml = nvml
        self._file = file
        self._last_scrapes = last_scrapes

    async def scrape(self, moment: str) -> list[Scrape]:
        """Scrape all sources once, and write the scrapes."""
        asked_ns = now_ns()
        gpus = self._nvml.read() if self._nvml else []
        scrapes = await asyncio.gather(*(scrape(source, moment) for source in self._sources))
        lines = [sample.to_dict() for sample in scrapes]
        if gpus:
            lines.append({"asked_ns": asked_ns, "gpus": gpus})
        self._file.write(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        return scrapes

    async def scrape_every_second(self) -> None:
        """Scrape on a grid of whole seconds from now on, without those that pass while an answer takes longer."""
        due_s = time.monotonic()
        while True:
            due_s += PERIOD_S * max(1, -((due_s - time.monotonic()) // PERIOD_S))
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            await self.scrape(TICK)

    async def scrape_last(self) -> None:
        """Scrape until every server is idle, but a few times at most."""
        for _ in range(self._last_scrapes):
            scrapes = await self.scrape(LAST)
            if not any(sample.values.get("running") or sample.values.get("waiting") for sample in scrapes):
                return
            await asyncio.sleep(SETTLE_S)


async def get(source: Source) -> http_client.Reply:
    """Get the metrics of a source.

    Raises:
        Unreachable: It did not answer, or not in time.
    """
    return await http_client.get(source.url, headers=source.headers, verify_tls=source.verify_tls, timeout_s=PATIENCE_S)


async def scrape(source: Source, moment: str) -> Scrape:
    """Scrape one source once; an error makes a scrape that says why it failed."""
    asked_ns = now_ns()
    failed = None
    reading = None
    try:
        reply = await get(source)
        answered_ns = now_ns()
        if reply.status == 200:
            reading = read(reply.body)
        else:
            failed = f"status {reply.status}"
    except Unreachable:
        answered_ns, failed = now_ns(), "no answer"
    except Unreadable:
        failed = "unreadable"
    return Scrape(
        url=source.url,
        target=source.target,
        moment=moment,
        asked_ns=asked_ns,
        answered_ns=answered_ns,
        failed=failed,
        **(vars(reading) if reading else {}),
    )


async def carry_out(order: ScrapeOrder) -> bool:
    """Carry out an order, upon the commands on standard input; returns whether it was carried out to its end."""
    commands = asyncio.StreamReader(limit=1 << 20)
    stdin = os.fdopen(os.dup(0), "rb", 0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), stdin
    )
    try:
        with contextlib.suppress(BrokenPipeError):  # the process that started this one is gone
            is_complete = bool(await commands.readline()) and await handle_commands(order, commands)
            transport.close()  # what comes next is another order
            if is_complete:
                child_process.answer(None)
            return is_complete
    except OSError as error:
        print(f"loadgen: server metrics are not kept: {error.strerror}", file=sys.stderr)
    return False


async def handle_commands(order: ScrapeOrder, commands: asyncio.StreamReader) -> bool:
    """Scrape at once, every second, and for the last time upon the next command; returns whether that came.

    Raises:
        OSError: A scrape cannot be written.
    """
    with (
        Nvml.opened() if order.gpus else contextlib.nullcontext() as nvml,
        open(order.folder / FILE_NAME, "ab", buffering=0) as file,  # noqa: ASYNC230 - nothing else waits here
    ):
        scraper = Scraper(order.sources, nvml, file, order.last_scrapes)
        await scraper.scrape(FIRST)
        child_process.answer(None)
        async with background_tasks(scraper.scrape_every_second()):
            if not await commands.readline():
                return False
        await scraper.scrape_last()
        return True


def run() -> None:
    """Run the process."""
    child_process.name_process("scraper")
    os.nice(NICENESS)
    for line in child_process.lines():
        if not asyncio.run(carry_out(child_process.decode(line))):
            return


if __name__ == "__main__":
    run()
