"""Measurer: who carries out the part of a run that is on the clock: the running event loop, or processes.

Light to import, so that a command can start its workers first and import what it needs itself meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from loadgen.beside import beside
from loadgen.errors import WorkerDied

if TYPE_CHECKING:
    from loadgen.measurement import Job, Measured, Measurement, Progress

T = TypeVar("T")

PROGRESS_S = 0.25
LEAD_NS = 50_000_000  # between the time at which all are ready and the start of the clock: each must hear of it before


class Measurer(Protocol):
    """Carries out one job.

    Attributes:
        workers: How many loops on this machine share its requests.
    """

    workers: int

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: "Callable[[Progress], None]"
    ) -> "Measured":
        """Carry it out once its requests are prepared, and tell a few times a second how far it is."""

    def stop(self, reason: str) -> None:
        """Send nothing more, let what is in flight end."""

    def abort(self, reason: str) -> None:
        """Send nothing more, end what is in flight."""


class Part(Protocol):
    """Carries out one stripe of a run: a `Measurement` in the running loop, or one somewhere else.

    Attributes:
        job: What it has to do.
    """

    job: "Job"

    async def check_ready(self) -> None:
        """Take up the requests; see that the servers answer."""

    async def warm_up(self) -> None:
        """Send what is sent off the record."""

    async def connect(self) -> None:
        """Get ready for the clock."""

    async def carry_out(self, start_ns: int) -> "Measured":
        """Send on a clock that starts at `start_ns`, and wait until all has ended.

        Raises:
            WorkerDied: It has gone.
        """

    def progress(self) -> "Progress":
        """How far it is."""

    def stop(self, reason: str) -> None:
        """Send nothing more."""


class OwnLoop:
    """Measures in the running event loop: for the library."""

    workers = 1

    def __init__(self) -> None:
        self._measurement: Measurement | None = None

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: "Callable[[Progress], None]"
    ) -> "Measured":
        """Measure here."""
        from loadgen.measurement import Measurement

        async with Measurement(job) as self._measurement:
            await self._measurement.open()
            return await together([self._measurement], job, prepared, on_progress)

    def stop(self, reason: str) -> None:
        """Send nothing more."""
        if self._measurement:
            self._measurement.stop(reason)

    def abort(self, reason: str) -> None:
        """End it."""
        if self._measurement:
            self._measurement.abort(reason)


async def together(
    parts: Sequence[Part], job: "Job", prepared: Awaitable[None], on_progress: "Callable[[Progress], None]"
) -> "Measured":
    """Have all parts of a run carried out on one clock, which starts once all of them are ready.

    What is done once for all of them is done here: servers are asked of themselves, records become one file. A part
    that dies meanwhile is made up for by what it left in its records; the others send nothing more.

    Args:
        parts: Which; connections may be opened already.
        job: The whole of it.
        prepared: Awaited until the requests lie in the job's folder.
        on_progress: Told a few times a second.

    Raises:
        WorkerDied: One has gone, before the clock started or without anything left of the run.
    """
    from loadgen.clock import now_ns
    from loadgen.measurement import Measured
    from loadgen.scraping import Scraping
    from loadgen.telemetry import Telemetry

    deaths: list[WorkerDied] = []
    async with Scraping(job.scraping) as scraping, beside(_watch(parts, on_progress)):
        await prepared
        await _all(part.check_ready() for part in parts)
        await _all(part.warm_up() for part in parts)
        await scraping.first()
        await _all(part.connect() for part in parts)
        start_ns = now_ns() + LEAD_NS
        found = await _all(_carried_out(part, start_ns, parts, deaths) for part in parts)
        await scraping.last()
    whole = replace(reduce(Measured.merge, found), telemetry=Telemetry.left_in(job.folder, start_ns))
    if deaths and not whole.snapshot.ended:
        raise WorkerDied(deaths[0].who, f"{deaths[0].how}: nothing of the run is left")
    return await _one_file(parts, whole)


async def _carried_out(part: Part, start_ns: int, parts: Sequence[Part], deaths: list[WorkerDied]) -> "Measured":
    """What a part brings back, or what it has left if it dies, which stops the others."""
    from loadgen import left

    try:
        return await part.carry_out(start_ns)
    except WorkerDied as died:
        deaths.append(died)
        for other in parts:
            other.stop(str(died))
        return await asyncio.to_thread(left.by_one, part.job, start_ns, died)


async def _one_file(parts: Sequence[Part], whole: "Measured") -> "Measured":
    """Put the records of all parts together; returns what was measured, with what went wrong."""
    from loadgen.parts import put_together

    paths = [part.job.records for part in parts if part.job.records]
    if not paths:
        return whole
    error = whole.records_error
    wrong = await asyncio.to_thread(put_together, paths, None if error else whole.ending)
    if wrong is None:
        return whole
    first, *others = whole.shards
    first = replace(first, client=replace(first.client, records_error=error or wrong))
    return replace(whole, shards=(first, *others))


async def _all(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What each of them returns; the first error of any of them ends the others."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watch(parts: Sequence[Part], on_progress: "Callable[[Progress], None]") -> None:
    from loadgen.measurement import Progress

    while True:
        await asyncio.sleep(PROGRESS_S)
        on_progress(Progress.together([part.progress() for part in parts]))
