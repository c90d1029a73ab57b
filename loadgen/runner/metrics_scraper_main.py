"""The scraper process: asks the servers beside the load, so that no measuring process has to.

`python -m loadgen.runner.metrics_scraper_main` reads messages. A ProbeOrder is answered with
progress and a Server, and a FindOrder with a ScrapeOrder or None; or each with an error. A
ScrapeOrder has the metrics scraped once a second. After it come the messages `first` and `last`;
the process answers None to each once it is done, and scrapes every second in between: the sources
that a message between them has, once one came. It writes each scrape to a file at once, so that
scrapes outlive every process.
"""

import asyncio
import contextlib
import ipaddress
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import urlsplit

import orjson
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.engines.sim.prefix_cache import BLOCK
from loadgen.errors import BadInput, LoadgenError, Unreachable, setting
from loadgen.metrics.server.parser import (
    CACHE_CONFIG_OF_VLLM,
    Unreadable,
    cache_block,
    is_json,
    is_text,
    read,
)
from loadgen.metrics.server.series import FIRST, LAST, TICK, Scrape, ScrapeOrder, Source
from loadgen.metrics.server.telemetry import FILE_NAME
from loadgen.runner.metrics_scraper import PATIENCE_S, SETTLE_S, FindOrder, ProbeOrder
from loadgen.runner.server import Server, probe
from loadgen.util import accelerators, child_process, http_client
from loadgen.util.accelerators import Nvml
from loadgen.util.clock import now_ns
from loadgen.util.redaction import KEY_VARIABLE, redact_user
from loadgen.util.tasks import background_tasks
from loadgen.workload import target
from loadgen.workload.prefix_cache.cache_block import CacheBlock

PERIOD_S = 1.0
FLAG, AUTO, OFF = setting.server_metrics, "auto", "off"
# The second is TensorRT-LLM's, which has JSON at the first.
PATHS = ("/metrics", "/prometheus/metrics")
MAX_LAST_SCRAPES = 5  # a server may count a request a moment after it has answered it
MAX_LAST_SCRAPES_OF_EARLY_ENDS = 30  # and may take longer to stop what nobody waits for
NICENESS = 10  # the measuring processes, and the server, go first


class FoundSource(NamedTuple):
    """A source that has answered.

    Attributes:
        source: The source.
        block: The unit of the server's prefix cache, if the answer says it.
    """

    source: Source
    block: CacheBlock | None = None


async def get(source: Source) -> http_client.Reply:
    """Get the metrics of a source.

    Raises:
        Unreachable: It did not answer, or not in time.
    """
    return await http_client.get(
        source.url, headers=source.headers, route=source.route, timeout_s=PATIENCE_S
    )


async def scrape_order(
    settings: RunSettings, folder: Path, *, simulated: bool = False
) -> ScrapeOrder | None:
    """Find what to scrape during a run; None where the user wants nothing scraped, or no server has
    metrics.

    Args:
        settings: Resolved, with the URL at which the server answers.
        folder: The folder of the run.
        simulated: Whether it is loadgen's simulator, started for the run, which is known to have
            metrics and no GPU.

    Raises:
        BadInput: The settings name what is no URL, or what has no metrics.
    """
    given = settings.server_metrics
    if given == (OFF,):
        return None
    each = {target.base_url(alone): alone for alone in settings.apart()}
    is_here = settings.unix_socket is not None or any(map(_is_here, each))
    gpus_too = not simulated and is_here and accelerators.installed()
    missing: tuple[str, ...] = ()
    if given not in ((), (AUTO,)):
        found = [await _named_source(url, each) for url in dict.fromkeys(given)]
        known = {target.origin(one.source.url) for one in found}
        missing = tuple(base for base in each if target.origin(base) not in known)
        if len(missing) == len(each):  # the sources are those of other servers
            missing = ()
    elif simulated:
        block = CacheBlock(BLOCK, CACHE_CONFIG_OF_VLLM)
        found = [
            FoundSource(_source(base + PATHS[0], base, alone), block)
            for base, alone in each.items()
        ]
    else:
        usual = {base: await _usual_source(base, alone) for base, alone in each.items()}
        found = [one for one in usual.values() if one]
        if found and len(found) < len(each):  # the sums of some would be taken for those of all
            found, missing = [], tuple(base for base, one in usual.items() if one is None)
    if not found and not gpus_too and not missing:
        return None
    times = MAX_LAST_SCRAPES_OF_EARLY_ENDS if settings.early_ends else MAX_LAST_SCRAPES
    blocks = (one.block for one in found if one.block)
    return ScrapeOrder(
        tuple(one.source for one in found), folder, gpus_too, times, missing, next(blocks, None)
    )


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _usual_source(base: str, settings: RunSettings) -> FoundSource | None:
    """Return the first of the usual paths with metrics; JSON only where there is no Prometheus
    text.
    """
    json = None
    for path in PATHS:
        source = _source(base + path, base, settings)
        try:
            reply = await get(source)
        except Unreachable:
            return json
        if reply.status == 200 and is_text(reply.body):
            return FoundSource(source, cache_block(reply.body))
        if reply.status != 200 or not is_json(reply.body):
            return json
        json = FoundSource(source)
    return json


async def _named_source(url: str, each: Mapping[str, RunSettings]) -> FoundSource:
    """Return the source of a URL that the settings name, once it has answered with metrics."""
    if url in (AUTO, OFF):
        raise BadInput(FLAG, f"{url} beside other values", f"give {url} alone, or URLs")
    try:
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise BadInput(
                FLAG,
                f"{redact_user(url)!r} has a user in it",
                f"leave it out: {setting.api_key} and {setting.header} go to the host and port of "
                f"{setting.base_url}",
            )
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        usable = (
            usable and parts.port != 0 and url.isascii() and url.isprintable() and " " not in url
        )
    except ValueError:
        usable = False
    if not usable:
        raise BadInput(
            FLAG,
            f"invalid http or https URL {redact_user(url)!r}",
            "write http://HOST:PORT/metrics",
        )
    base = next(
        (base for base in each if target.origin(base) == target.origin(url)), next(iter(each))
    )
    source = _source(url, base, each[base])
    remedy = (
        "name another, start the server with metrics (SGLang: --enable-metrics), or leave "
        "the flag out"
    )
    try:
        reply = await get(source)
    except Unreachable as error:
        raise BadInput(FLAG, str(error), remedy) from error
    if reply.status != 200:
        raise BadInput(FLAG, f"{url} answers {reply.status}", remedy)
    if not is_text(reply.body) and not is_json(reply.body):
        raise BadInput(FLAG, f"{url} answers no Prometheus text", remedy)
    return FoundSource(source, cache_block(reply.body))


def _source(url: str, base: str, settings: RunSettings) -> Source:
    """Make a source of the target at `base`; credentials are sent to that server alone."""
    headers = target.headers(settings) if target.origin(url) == target.origin(base) else {}
    return Source(url, base, headers, target.route(settings, url))


class Scraper:
    """Scrapes all sources at once, time after time.

    Args:
        sources: Where the servers' metrics are.
        nvml: This machine's GPUs, if they are to be read.
        file: Where to write each scrape, as a line.
        last_scrapes: As in a `ScrapeOrder`.

    Attributes:
        sources: The same.
    """

    def __init__(
        self, sources: tuple[Source, ...], nvml: Nvml | None, file: BinaryIO, last_scrapes: int
    ) -> None:
        self.sources = sources
        self._nvml = nvml
        self._file = file
        self._last_scrapes = last_scrapes

    async def scrape(self, moment: str) -> list[Scrape]:
        """Scrape all sources once, and write the scrapes."""
        asked_ns = now_ns()
        gpus = self._nvml.read() if self._nvml else []
        scrapes = await asyncio.gather(*(scrape(source, moment) for source in self.sources))
        lines = [sample.to_dict() for sample in scrapes]
        if gpus:
            lines.append({"asked_ns": asked_ns, "gpus": gpus})
        self._file.write(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        return scrapes

    async def scrape_every_second(self) -> None:
        """Scrape on a grid of whole seconds from now on, without those that pass while an answer
        takes longer.
        """
        due_s = time.monotonic()
        while True:
            due_s += PERIOD_S * max(1, -((due_s - time.monotonic()) // PERIOD_S))
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            await self.scrape(TICK)

    async def scrape_last(self) -> None:
        """Scrape until every server is idle, but a few times at most."""
        for _ in range(self._last_scrapes):
            scrapes = await self.scrape(LAST)
            if not any(
                sample.values.get("running") or sample.values.get("waiting") for sample in scrapes
            ):
                return
            await asyncio.sleep(SETTLE_S)


async def scrape(source: Source, moment: str) -> Scrape:
    """Scrape one source once; an error makes a scrape that says why it failed."""
    asked_ns = now_ns()
    failed = None
    reading = None
    try:
        reply = await get(source)
        answered_ns = now_ns()
        if reply.status == 200:
            reading = read(reply.body, reply.headers.get("Content-Type", ""))
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
        **(structs.asdict(reading) if reading else {}),
    )


async def carry_out(order: ScrapeOrder, lines: child_process.InputLines) -> bool:
    """Carry out an order, upon the commands on standard input, which follow its line; returns
    whether it was carried out to its end.
    """
    commands = asyncio.StreamReader(limit=1 << 20)
    commands.feed_data(lines.rest)
    lines.rest = b""
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), child_process.LoopPipe(0)
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
    """Scrape at once, every second, and for the last time upon the next command; returns whether
    that came.

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
            while line := await commands.readline():
                if (message := child_process.decode(line)) == LAST:
                    break
                scraper.sources = message
            else:
                return False
        await scraper.scrape_last()
        return True


async def answer(order: ProbeOrder | FindOrder) -> Server | ScrapeOrder | LoadgenError | None:
    """Return the answer to an order that is no ScrapeOrder."""
    if order.key is not None:
        os.environ[KEY_VARIABLE] = order.key
    try:
        if isinstance(order, ProbeOrder):
            return await probe(order.settings, child_process.answer)
        return await scrape_order(order.settings, order.folder, simulated=order.simulated)
    except LoadgenError as error:
        return error


def run() -> None:
    """Run the process."""
    with http_client.certificates_unread():
        import aiohttp  # noqa: F401 - now, while the command imports other modules

    child_process.name_process("scraper")
    niceness = os.nice(0) + NICENESS
    lines = child_process.InputLines()
    for line in lines:
        order = child_process.decode(line)
        if not isinstance(order, ScrapeOrder):
            child_process.answer(asyncio.run(answer(order)))
            continue
        os.nice(niceness - os.nice(0))
        if not asyncio.run(carry_out(order, lines)):
            return


if __name__ == "__main__":
    run()
