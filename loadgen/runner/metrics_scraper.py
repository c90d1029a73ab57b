"""Where servers have metrics, and the process that scrapes them during a run."""

import asyncio
import contextlib
import ipaddress
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from loadgen.config.settings import RunSettings
from loadgen.engines.sim.prefix_cache import BLOCK
from loadgen.errors import BadInput, Unreachable
from loadgen.metrics.server import cache_block
from loadgen.metrics.server.cache_block import OF_VLLM
from loadgen.metrics.server.parser import is_json, is_text
from loadgen.metrics.server.scrape_order import ScrapeOrder
from loadgen.metrics.server.series import Source
from loadgen.runner.metrics_scraper_main import PATIENCE_S, SETTLE_S, get
from loadgen.util import accelerators
from loadgen.util.child_process import ChildProcess
from loadgen.util.redaction import redact_user
from loadgen.workload import target
from loadgen.workload.prefix_cache.cache_block import CacheBlock

FLAG, AUTO, OFF = "--server-metrics", "auto", "off"
PATHS = ("/metrics", "/prometheus/metrics")  # the second is TensorRT-LLM's, which has JSON at the first
START_S = 10.0  # for the process to import what it needs
MAX_LAST_SCRAPES = 5  # a server may count a request a moment after it has answered it
MAX_LAST_SCRAPES_OF_DEPARTURES = 30  # and may take longer to stop what nobody waits for


class FoundSource(NamedTuple):
    """A source that has answered.

    Attributes:
        source: The source.
        block: The unit of the server's prefix cache, if the answer says it.
    """

    source: Source
    block: CacheBlock | None = None


class MetricsScraper:
    """A process that scrapes server metrics once a second, as long as the context.

    It is no thread, which would share the interpreter's lock with the loop that measures. The process writes scrapes to
    a file, so that the loop reads two messages of it in a run, both off the clock. Where it fails or dies, the run goes
    on.

    Args:
        order: What to scrape; None: nothing, and there is no process.
    """

    def __init__(self, order: ScrapeOrder | None) -> None:
        self._order = order
        self._child = ChildProcess("loadgen.runner.metrics_scraper_main", keep=True) if order else None

    async def __aenter__(self) -> Self:
        if self._child:
            await self._child.__aenter__()
            self._child.send(self._order)
            self._answers = self._child.messages()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._child:
            await self._child.__aexit__(*error)

    async def scrape_first(self) -> None:
        """Scrape once, and from now on every second; returns when all have answered or had the time to."""
        await self._command("first")

    async def scrape_last(self) -> None:
        """Scrape for the last time; returns when all have answered or had the time to."""
        answered = await self._command("last")
        if self._child:
            self._child.is_idle = answered

    async def _command(self, command: str) -> bool:
        """Send a command, and return whether it was answered in time."""
        if self._child and self._order:
            limit_s = START_S + self._order.last_scrapes * (PATIENCE_S + SETTLE_S)
            self._child.send(command)
            with contextlib.suppress(TimeoutError, StopAsyncIteration):
                async with asyncio.timeout(limit_s):
                    await anext(self._answers)
                    return True
        return False


async def scrape_order(settings: RunSettings, folder: Path, *, simulated: bool = False) -> ScrapeOrder | None:
    """Find what to scrape during a run.

    Args:
        settings: The settings of the run, resolved, with the URL at which the server answers.
        folder: The folder of the run.
        simulated: Whether it is loadgen's simulator, started for the run, which always has metrics and no GPU.

    Returns:
        What to scrape; None if the settings switch scraping off, or no server has metrics.

    Raises:
        BadInput: The settings name what is no URL, or what has no metrics.
    """
    urls = settings.server_metrics
    if urls == (OFF,):
        return None
    servers = {target.base_url(server): server for server in settings.apart()}
    reads_gpus = not simulated and any(map(_is_local, servers)) and accelerators.installed()
    missing: tuple[str, ...] = ()
    if urls not in ((), (AUTO,)):
        answers = [await _named_source(url, servers) for url in dict.fromkeys(urls)]
        missing = _targets_without_source([answer.source for answer in answers], servers)
    elif simulated:
        block = CacheBlock(BLOCK, OF_VLLM)
        answers = [FoundSource(_source(base + PATHS[0], base, server), block) for base, server in servers.items()]
    else:
        usual = {base: await _usual_source(base, server) for base, server in servers.items()}
        answers = [answer for answer in usual.values() if answer]
        if answers and len(answers) < len(servers):  # the sums of some would be taken for those of all
            answers = []
            missing = tuple(base for base, answer in usual.items() if answer is None)
    if not answers and not reads_gpus and not missing:
        return None
    last_scrapes = MAX_LAST_SCRAPES if settings.disconnect is None else MAX_LAST_SCRAPES_OF_DEPARTURES
    return ScrapeOrder(
        tuple(answer.source for answer in answers),
        folder,
        reads_gpus,
        last_scrapes,
        missing,
        next((answer.block for answer in answers if answer.block), None),
    )


def _targets_without_source(sources: Sequence[Source], bases: Collection[str]) -> tuple[str, ...]:
    """Return the targets without a source, if other targets have one; () if all share a source."""
    origins = {target.origin(source.url) for source in sources}
    missing = tuple(base for base in bases if target.origin(base) not in origins)
    return missing if len(missing) < len(bases) else ()


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _usual_source(base: str, settings: RunSettings) -> FoundSource | None:
    """Return the first of the usual paths with metrics; JSON only if there is no Prometheus text."""
    json = None
    for path in PATHS:
        source = _source(base + path, base, settings)
        try:
            reply = await get(source)
        except Unreachable:
            return json
        if reply.status == 200 and is_text(reply.body):
            return FoundSource(source, cache_block.read(reply.body))
        if reply.status != 200 or not is_json(reply.body):
            return json
        json = FoundSource(source)
    return json


async def _named_source(url: str, servers: Mapping[str, RunSettings]) -> FoundSource:
    """Return the source of a URL that the settings name, once it has answered with metrics.

    Raises:
        BadInput: It is no URL, does not answer, or has no metrics.
    """
    if url in (AUTO, OFF):
        raise BadInput(FLAG, f"{url} beside other values", f"give {url} alone, or URLs")
    try:
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise BadInput(
                FLAG,
                f"{redact_user(url)!r} has a user in it",
                "leave it out: --api-key and --header go to the host and port of --base-url",
            )
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_valid = is_http and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        is_valid = False
    if not is_valid:
        raise BadInput(FLAG, f"invalid http or https URL {redact_user(url)!r}", "write http://HOST:PORT/metrics")
    base = next((base for base in servers if target.origin(base) == target.origin(url)), next(iter(servers)))
    source = _source(url, base, servers[base])
    remedy = "name another, start the server with metrics (SGLang: --enable-metrics), or leave the flag out"
    try:
        reply = await get(source)
    except Unreachable as error:
        raise BadInput(FLAG, str(error), remedy) from error
    if reply.status != 200:
        raise BadInput(FLAG, f"{url} answers {reply.status}", remedy)
    if not is_text(reply.body) and not is_json(reply.body):
        raise BadInput(FLAG, f"{url} answers no Prometheus text", remedy)
    return FoundSource(source, cache_block.read(reply.body))


def _source(url: str, base: str, settings: RunSettings) -> Source:
    """Make a source of the target at `base`; credentials are sent to that server alone."""
    headers = target.headers(settings) if target.origin(url) == target.origin(base) else {}
    return Source(url, base, headers, not settings.insecure)
