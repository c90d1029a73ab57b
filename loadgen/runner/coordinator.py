"""Measurer: who carries out the part of a run that is on the clock: the running event loop, or processes.

Light to import, so that a command can start its workers first and import what it needs itself meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from loadgen.errors import LoadgenError
from loadgen.metrics.progress import DONE, Progress
from loadgen.util.tasks import background_tasks

if TYPE_CHECKING:
    from loadgen.metrics.reachability import Contact
    from loadgen.metrics.snapshot import Snapshot
    from loadgen.runner.measurement import Job, Measured, Measurement
    from loadgen.runner.participant import Part

PROGRESS_S = 0.25
LEAD_NS = 50_000_000  # between the time at which all are ready and the start of the clock: each must hear of it before


class Measurer(Protocol):
    """Carries out one job.

    Attributes:
        workers: How many loops on each machine share its requests.
    """

    workers: int

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: Callable[[Progress], None]
    ) -> "Measured":
        """Carry it out once its requests are prepared, and tell a few times a second how far it is."""

    def stop(self, reason: str) -> None:
        """Send nothing more, let what is in flight end."""

    def abort(self, reason: str) -> None:
        """Send nothing more, end what is in flight."""

    def snapshot(self) -> "Snapshot | None":
        """What was measured so far; None before the clock starts, and where telling it would hold up the clock."""


class OwnLoop:
    """Measures in the running event loop: for the library."""

    workers = 1

    def __init__(self) -> None:
        self._measurement: Measurement | None = None

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: Callable[[Progress], None]
    ) -> "Measured":
        """Measure here."""
        from loadgen.runner.measurement import Measurement

        async with Measurement(job) as self._measurement:
            await self._measurement.open()
            return await conduct(self._measurement, prepared, on_progress)

    def stop(self, reason: str) -> None:
        """Send nothing more."""
        if self._measurement:
            self._measurement.stop(reason)

    def abort(self, reason: str) -> None:
        """End it."""
        if self._measurement:
            self._measurement.abort(reason)

    def snapshot(self) -> "Snapshot | None":
        """What was measured so far."""
        return self._measurement.snapshot() if self._measurement else None


async def conduct(part: "Part", prepared: Awaitable[None], on_progress: Callable[[Progress], None]) -> "Measured":
    """Have a run carried out, step by step; what is done once, whoever carries it out, is done here.

    That is asking the servers of themselves, setting the clock, ending a run whose servers are gone, and writing the
    end of the records.

    Args:
        part: The whole of it; connections may be opened already.
        prepared: Awaited until the requests lie in the job's folder.
        on_progress: Told a few times a second from then on, and of the whole at the end.

    Raises:
        LoadgenError: Before the clock started; or all who measured have died, and nothing of the run is left.
    """
    from loadgen.metrics.records.shards import finish
    from loadgen.metrics.server.telemetry import Telemetry
    from loadgen.runner.metrics_scraper import Scraping
    from loadgen.util.clock import now_ns

    job = part.job
    gone: Contact | None = None

    def watch(progress: Progress) -> None:
        nonlocal gone
        on_progress(progress)
        if gone is None and not job.settings.keep_going and (gone := progress.no_answer) is not None:
            part.abort(f"no answer since {gone.refused_s:.1f} s: {gone.why}")

    async with Scraping(job.scraping) as scraping:
        await prepared  # whoever prepares tells how far that is
        async with background_tasks(_watch(part, watch)):
            await part.check_ready()
            await part.warm_up()
            await scraping.first()
            await part.connect()
            start_ns = now_ns() + LEAD_NS
            measured = await part.carry_out(start_ns)
            await scraping.last()
        whole = part.progress()
        if gone is None and whole.contacts and all(contact.refusing for contact in whole.contacts):
            gone = max(whole.contacts, key=lambda contact: contact.refused_s or 0.0)
        on_progress(replace(whole, phase=DONE))
    if not measured.snapshot.ended and any(shard.lost for shard in measured.shards):
        raise LoadgenError(f"{measured.snapshot.partial}: nothing of the run is left")
    since_s = None if gone is None else gone.refused_s
    telemetry = Telemetry.left_in(job.folder, start_ns, job.scraping.missing if job.scraping else ())
    measured = replace(measured, telemetry=telemetry, no_answer_since_s=since_s)
    if job.records is None or measured.records_error:
        return measured
    return measured.with_records_error(finish(job.records, measured.ending))


async def _watch(part: "Part", on_progress: Callable[[Progress], None]) -> None:
    while True:
        on_progress(part.progress())
        await asyncio.sleep(PROGRESS_S)
