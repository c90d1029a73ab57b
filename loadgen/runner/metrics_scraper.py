"""The scraper as the command sees it: the process that asks the servers beside the load.

Light to import, so that a command can start that process first and import the rest meanwhile.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from loadgen.config.settings import RunSettings
from loadgen.errors import LoadgenError
from loadgen.metrics.progress import OnProgress, Progress
from loadgen.util import forked_child, key_command
from loadgen.util.child_process import ChildProcess
from loadgen.util.redaction import WithCredentials

if TYPE_CHECKING:
    from loadgen.metrics.server.series import ScrapeOrder, Source
    from loadgen.runner.server import Server

MODULE = "loadgen.runner.metrics_scraper_main"
START_S = 10.0  # for the process to import what it needs
PATIENCE_S = 2.0  # for one answer
SETTLE_S = 0.1  # between the last scrapes


class ProbeOrder(WithCredentials, frozen=True):
    """An order to probe the server of a run.

    Attributes:
        settings: The settings of the run.
        key: The API key that this process alone has: of a command, or of its environment.
    """

    settings: RunSettings
    key: str | None


class FindOrder(WithCredentials, frozen=True):
    """An order to find what to scrape: the arguments of `scrape_order`.

    Attributes:
        settings: Resolved, with the URL at which the server answers.
        folder: The folder of the run.
        simulated: Whether it is loadgen's simulator, started for the run.
        key: As of a ProbeOrder.
    """

    settings: RunSettings
    folder: Path
    simulated: bool
    key: str | None


class ScraperProcess(ChildProcess):
    """The scraper process of a command, forked ahead: it imports aiohttp while the command imports
    other modules.

    So it also probes the server and finds its metrics, which the command else could not do before
    that import.
    """

    def __init__(self) -> None:
        super().__init__(MODULE)

    async def probe(self, settings: RunSettings, on_progress: OnProgress) -> "Server":
        """As `server.probe`."""
        server: Server = await self._call(
            ProbeOrder(settings, key_command.in_process(settings.api_key_command)), on_progress
        )
        return server

    async def scrape_order(
        self, settings: RunSettings, folder: Path, *, simulated: bool = False
    ) -> "ScrapeOrder | None":
        """As the function `scrape_order`; where it returns None, the process ends."""
        order = FindOrder(
            settings, folder, simulated, key_command.in_process(settings.api_key_command)
        )
        found: ScrapeOrder | None = await self._call(order, lambda progress: None)
        if found is None:
            await self.stop()
        return found

    async def _call(self, order: ProbeOrder | FindOrder, on_progress: OnProgress) -> Any:
        self.send(order)
        async for answer in self.messages():
            if not isinstance(answer, Progress):
                return answer
            on_progress(answer)
        raise LoadgenError(f"the process that probes the server {await self.wait_ended()}")


@contextlib.asynccontextmanager
async def forked_scraper() -> AsyncIterator[ScraperProcess | None]:
    """Open the scraper process that the command has forked ahead; None where there is none."""
    if not forked_child.is_waiting(MODULE):
        yield None
        return
    async with ScraperProcess() as process:
        yield process


class MetricsScraper:
    """A process that scrapes server metrics once a second, as long as the context.

    It is no thread, which would share the interpreter's lock with the loop that measures. The
    process writes scrapes to a file, so that the loop reads two messages of it in a run, both off
    the clock. Where it fails or dies, the run goes on.

    Args:
        order: What to scrape; None: nothing, and no process is started.
        process: The process, where it is open already, and is closed by its owner; None: one of its
            own.
    """

    def __init__(self, order: "ScrapeOrder | None", process: ScraperProcess | None = None) -> None:
        self._order = order
        self._opened = ChildProcess(MODULE, keep=True) if order and process is None else None
        self._child = (process or self._opened) if order else None

    async def __aenter__(self) -> Self:
        if self._opened:
            await self._opened.__aenter__()
        if self._child:
            self._child.send(self._order)
            self._answers = self._child.messages()
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._opened:
            await self._opened.__aexit__(*error)

    async def scrape_first(self) -> None:
        """Scrape once, and from now on every second; returns when all have answered or had the
        time to.
        """
        await self._command("first")

    def use(self, sources: "tuple[Source, ...]") -> None:
        """Scrape these from now on, the same with other credentials."""
        if self._child:
            self._child.send(sources)

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
