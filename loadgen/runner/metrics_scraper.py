"""Scraping: where servers tell of themselves, and the process that asks them while a run goes on."""

import asyncio
import contextlib
import ipaddress
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, Unreachable
from loadgen.metrics.server.parser import is_json, is_text
from loadgen.metrics.server.series import Source
from loadgen.runner.metrics_scraper_main import MOST_LAST, PATIENCE_S, SETTLE_S, Order, ask
from loadgen.util import gpus
from loadgen.util.child_process import ChildProcess
from loadgen.util.redaction import redact_user
from loadgen.workload import target

FLAG, AUTO, OFF = "--server-metrics", "auto", "off"
PATHS = ("/metrics", "/prometheus/metrics")  # the second is TensorRT-LLM's, which has JSON at the first
START_S = 10.0  # for the process to import what it needs
LIMIT_S = START_S + MOST_LAST * (PATIENCE_S + SETTLE_S)


class Scraping:
    """Has a process of its own ask what the order names, once a second, while the context lasts.

    It is no thread: that would share the interpreter's lock with the loop that measures. What the process hears stays
    with it, in a file, so that the loop has two messages of it to read in a run, both off the clock. Where it fails, or
    dies, the run goes on.
    """

    def __init__(self, order: Order | None) -> None:
        self._order = order
        self._child = ChildProcess("loadgen.runner.metrics_scraper_main") if order else None

    async def __aenter__(self) -> Self:
        if self._child:
            await self._child.__aenter__()
            self._child.send(self._order)
            self._answers = self._child.messages()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._child:
            await self._child.__aexit__(*error)

    async def first(self) -> None:
        """Everybody is asked once, and from now on every second; returns when all have answered or had the time to."""
        await self._say("first")

    async def last(self) -> None:
        """Everybody is asked for the last time; returns when all have answered or had the time to."""
        await self._say("last")

    async def _say(self, command: str) -> None:
        if self._child:
            self._child.send(command)
            with contextlib.suppress(TimeoutError):  # after which nothing is waited for any more
                async with asyncio.timeout(LIMIT_S):
                    await anext(self._answers, None)


async def order(settings: RunSettings, folder: Path, *, simulated: bool = False) -> Order | None:
    """Who is to be asked of itself while a run goes on; None where nobody is, or nobody tells.

    Args:
        settings: Resolved, with the URL at which the server answers.
        folder: Of the run.
        simulated: Whether it is loadgen's simulator, started for the run, which is known to tell and has no GPU.

    Raises:
        BadInput: A URL that the settings name is none, or tells nothing.
    """
    given = settings.server_metrics
    if given == (OFF,):
        return None
    each = {target.base_url(alone): alone for alone in settings.apart()}
    gpus_too = not simulated and any(map(_is_here, each)) and gpus.installed()
    missing: tuple[str, ...] = ()
    if given not in ((), (AUTO,)):
        sources = [await _named(url, each) for url in dict.fromkeys(given)]
        missing = _unnamed(sources, each)
    elif simulated:
        sources = [_source(base + PATHS[0], base, alone) for base, alone in each.items()]
    else:
        found = {base: await _found(base, alone) for base, alone in each.items()}
        sources = [source for source in found.values() if source]
        if sources and len(sources) < len(each):  # the sums of some would be taken for those of all
            sources, missing = [], tuple(base for base, source in found.items() if source is None)
    return Order(tuple(sources), folder, gpus_too, missing) if sources or gpus_too or missing else None


def _unnamed(sources: Sequence[Source], bases: Collection[str]) -> tuple[str, ...]:
    """The targets of which no source tells, where the sources are those of other targets; none of a common source."""
    told = {target.origin(source.url) for source in sources}
    missing = tuple(base for base in bases if target.origin(base) not in told)
    return missing if len(missing) < len(bases) else ()


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _found(base: str, settings: RunSettings) -> Source | None:
    """The first of the usual places that tells; JSON only where there is nothing better."""
    json = None
    for path in PATHS:
        source = _source(base + path, base, settings)
        try:
            reply = await ask(source)
        except Unreachable:
            return json
        if reply.status == 200 and is_text(reply.body):
            return source
        if reply.status != 200 or not is_json(reply.body):
            return json
        json = source
    return json


async def _named(url: str, each: Mapping[str, RunSettings]) -> Source:
    """A place that the settings name, once it has told something."""
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
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        usable = usable and parts.port != 0 and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        usable = False
    if not usable:
        raise BadInput(FLAG, f"{redact_user(url)!r} is no http or https URL", "write http://HOST:PORT/metrics")
    base = next((base for base in each if target.origin(base) == target.origin(url)), next(iter(each)))
    source = _source(url, base, each[base])
    remedy = "name another, start the server so that it tells (SGLang: --enable-metrics), or leave the flag out"
    try:
        reply = await ask(source)
    except Unreachable as error:
        raise BadInput(FLAG, str(error), remedy) from error
    if reply.status != 200:
        raise BadInput(FLAG, f"{url} answers {reply.status}", remedy)
    if not is_text(reply.body) and not is_json(reply.body):
        raise BadInput(FLAG, f"{url} answers no Prometheus text", remedy)
    return source


def _source(url: str, base: str, settings: RunSettings) -> Source:
    """A source of the target at `base`; credentials are for that server alone, and no other gets them."""
    headers = target.headers(settings) if target.origin(url) == target.origin(base) else {}
    return Source(url, base, headers, not settings.insecure)
