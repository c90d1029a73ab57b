"""Coordinates the part of a run that is on the clock: chooses who carries it out, and has all take each step at once.

Light to import, as `participant` is.
"""

import logging
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, LoadgenError
from loadgen.metrics.progress import DONE, OnProgress, Progress
from loadgen.runner.participant import PROGRESS_S, Participant
from loadgen.runner.workers import open_workers, worker_count
from loadgen.util.tasks import background_tasks, repeat

if TYPE_CHECKING:
    from loadgen.metrics.failures import Reachability
    from loadgen.metrics.records.trailer import StopEvent
    from loadgen.metrics.run_data import Measurement
    from loadgen.runner.job import Job
    from loadgen.runner.metrics_scraper import ScraperProcess

# Between the time at which all are ready and the start of the clock: each must hear of it before.
LEAD_NS, LEAD_OF_ONE_NS = 50_000_000, 20_000_000

logger = logging.getLogger("loadgen")


def open_participant(settings: RunSettings, *, own_loop: bool = False) -> AbstractAsyncContextManager[Participant]:
    """Open the participant that carries out one run: the running loop, worker processes, or machines of a cluster.

    Args:
        settings: The settings of the run, checked.
        own_loop: Whether the running loop measures, where one loop is enough.

    Raises:
        BadInput: Several participants cannot write the records to the given path.
    """
    if settings.ray is not None:
        _check_records(settings, "--ray")
        from loadgen.runner.cluster.driver import open_nodes

        return open_nodes(settings)
    count = worker_count(settings)
    if count > 1:
        _check_records(settings, "--workers")
    if own_loop and count == 1:
        from loadgen.runner.loop_runner import LoopRunner

        return LoopRunner()
    return open_workers(count)


async def coordinate(
    participant: Participant,
    job: "Job",
    prepared: Awaitable[None],
    on_progress: OnProgress,
    scraper_process: "ScraperProcess | None" = None,
) -> "Measurement":
    """Have a participant carry out a job, and do what is done once in every run.

    Args:
        participant: Open, and without a job.
        prepared: Awaited until the requests lie in the job's folder.
        on_progress: Called a few times a second from then on, and once at the end.
        scraper_process: The process that scrapes, where it is open already.

    Raises:
        BadInput: A server refuses a call before the clock started.
        LoadgenError: Something failed before the clock started; or all participants died, and nothing was recovered.
    """
    # That is scraping server metrics, calls to the servers before and after, setting the clock, ending a run whose
    # servers are gone or that meets a condition of --stop-when, and writing the trailer of the records.
    from loadgen.metrics.records.shards import write_trailer
    from loadgen.metrics.server.telemetry import LatestServerMetrics, Telemetry
    from loadgen.metrics.snapshot import LoopTotals
    from loadgen.runner.metrics_scraper import MetricsScraper
    from loadgen.runner.server_calls import ServerCalls
    from loadgen.runner.stop_conditions import StopConditions
    from loadgen.util.clock import now_ns

    gone: Reachability | None = None
    stopped: StopEvent | None = None
    conditions = StopConditions(job.settings)
    metrics = None if job.scraping is None else LatestServerMetrics(job.folder)
    has_sources = job.scraping is not None and bool(job.scraping.sources)

    def progress_now() -> Progress:
        progress = participant.progress()
        return progress if metrics is None else replace(progress, server=metrics.latest())

    def running() -> float | None:
        return progress_now().server.get("running")

    def watch() -> None:
        nonlocal gone, stopped
        on_progress(progress := progress_now())
        if stopped is None and (stopped := conditions.add(progress)) is not None:
            participant.stop(str(stopped))
        if gone is None and not job.settings.keep_going and (gone := progress.no_answer) is not None:
            participant.abort(f"no answer from {gone.refused_s:.1f} s on: {gone.why}")

    async with MetricsScraper(job.scraping, scraper_process) as scraper:
        await participant.begin(job)
        await prepared
        calls = ServerCalls(job.settings, running if has_sources else None)
        watch()
        async with background_tasks(repeat(PROGRESS_S, watch)):
            await calls.empty_caches()  # before anything is sent, since a server may have no call for it
            await participant.take("check_ready")
            await participant.take("warm_up")
            async with calls:
                await scraper.scrape_first()
                await participant.take("connect")
                is_alone = participant.workers == 1 and job.settings.ray is None
                start_ns = now_ns() + (LEAD_OF_ONE_NS if is_alone else LEAD_NS)
                measurement = await participant.carry_out(start_ns)
                await scraper.scrape_last()
        progress = progress_now()
        if gone is None and progress.contacts and all(contact.refusing for contact in progress.contacts):
            gone = max(progress.contacts, key=lambda contact: contact.refused_s or 0.0)
        on_progress(replace(progress, phase=DONE))
    if stopped is None and conditions.never_judged:
        told = ", ".join(conditions.never_judged)
        logger.warning("--stop-when: %s was not judged in this run: it was too short, or too few requests ended", told)
    participant.release()  # before the result is made, which takes as much memory as a worker
    snapshot, trailer = measurement.snapshot, measurement.trailer
    if not snapshot.ended and any(worker.lost for worker in trailer.workers):
        raise LoadgenError(f"{snapshot.partial}: nothing of the run is left")
    telemetry = Telemetry.left_in(job.folder, start_ns, job.scraping.missing if job.scraping else ())
    trailer = replace(
        trailer,
        telemetry=telemetry,
        calls=tuple(calls.made),
        no_answer_since_s=None if gone is None else gone.refused_s,
        stopped=stopped,
    )
    measurement = replace(measurement, trailer=trailer)
    if job.records is None or trailer.records_error:
        return measurement
    return measurement.with_records_error(write_trailer(job.records, trailer, LoopTotals.of(snapshot)))


def _check_records(settings: RunSettings, flag: str) -> None:
    """Refuse a pipe or a device for the records: each participant writes a file of its own, and these are joined.

    Raises:
        BadInput: It is no regular file.
    """
    if settings.records is not None and (path := Path(settings.records)).exists() and not path.is_file():
        problem = f"{path} is not a regular file, and several processes cannot write to it together"
        raise BadInput("--records", problem, f"name a file, or leave {flag} out")
