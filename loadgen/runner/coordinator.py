"""Coordinates a run: opens the participant that sends its requests, and takes it through its steps.

What is done once per run is done here, too: scraping server metrics, calls to the servers, and
`--stop-when`.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.config.slo import ERRORS, RATES, StopCondition
from loadgen.core.outcome import Cause, ended_by
from loadgen.core.sketch import Sketch
from loadgen.errors import LoadgenError
from loadgen.features.liveness import fact as liveness_fact
from loadgen.metrics.failures import Reachability
from loadgen.metrics.progress import DONE, OnProgress, Progress
from loadgen.metrics.records.file import write_trailer
from loadgen.metrics.records.trailer import StopEvent
from loadgen.metrics.run_data import Measurement
from loadgen.metrics.server.telemetry import LatestServerMetrics, Telemetry
from loadgen.metrics.snapshot import LoopTotals
from loadgen.runner.job import Job
from loadgen.runner.key_renewal import KeyRenewal
from loadgen.runner.liveness import watch_liveness
from loadgen.runner.metrics_scraper import MetricsScraper, ScraperProcess
from loadgen.runner.participant import Participant
from loadgen.runner.server_calls import ServerCalls
from loadgen.runner.workers import open_workers, worker_count
from loadgen.util.clock import now_ns
from loadgen.util.tasks import background_tasks, repeat
from loadgen.workload import target

# From the time at which all participants are ready to the start of the clock: each must hear of it
# before.
LEAD_NS = 50_000_000
LEAD_OF_ONE_NS = 20_000_000
STOP_CHECK_S = 1.0  # between two looks at the conditions of --stop-when
START = Progress("running")  # nothing has happened

logger = logging.getLogger("loadgen")


def open_participant(
    settings: RunSettings, *, own_loop: bool = False
) -> AbstractAsyncContextManager[Participant]:
    """Open the participant that carries out one run: the running loop, worker processes, or
    machines of a cluster.

    Args:
        settings: The settings of the run, checked.
        own_loop: Whether the running loop measures if one loop is enough.

    Returns:
        A context that yields the participant, without a job.
    """
    if settings.ray is not None:
        from loadgen.runner.cluster_driver import open_nodes  # 20 ms of CPU time, for few runs

        return open_nodes(settings)
    count = worker_count(settings)
    if own_loop and count == 1:
        # 40 ms of CPU time, which workers make needless
        from loadgen.runner.loop_runner import LoopRunner

        return LoopRunner()
    return open_workers(count)


async def coordinate(
    participant: Participant,
    job: "Job",
    prepared: Awaitable[None],
    on_progress: OnProgress,
    scraper_process: ScraperProcess | None = None,
    engines: Sequence[Any] = (),
) -> "Measurement":
    """Have a participant carry out a job, and do what is done once in every run.

    That is scraping server metrics, calls to the servers before and after, setting the clock,
    ending a run whose servers are gone or hang or that meets a condition of --stop-when, and ending
    its records.

    Args:
        participant: Open, and without a job.
        job: The whole run.
        prepared: Awaited until the requests are in the job's folder.
        on_progress: Called a few times a second from then on, and once at the end.
        scraper_process: The process that scrapes, where it is open already.
        engines: The servers that were started for the run.

    Returns:
        The measurement of the whole run, with its telemetry and its calls.

    Raises:
        BadInput: A server refuses a call before the clock started.
        LoadgenError: Something failed before the clock started; or all participants died, and
            nothing was recovered.
    """
    gone: Reachability | None = None
    stopped: StopEvent | None = None
    conditions = StopConditions(job.settings)
    metrics = None if job.scraping is None else LatestServerMetrics(job.folder)
    has_sources = job.scraping is not None and bool(job.scraping.sources)
    liveness = watch_liveness(
        job.settings,
        job.header.model,
        engines=engines,
        pids=(*job.engine_pids, *job.server_pids),
        counts=metrics.counts if metrics is not None and has_sources else None,
    )

    def progress_now() -> Progress:
        progress = participant.progress()
        return progress if metrics is None else structs.replace(progress, server=metrics.latest())

    def running() -> float | None:
        return progress_now().server.get("running")

    def watch() -> None:
        nonlocal gone, stopped
        progress = progress_now()
        on_progress(progress)
        if stopped is None and (stopped := conditions.add(progress)) is not None:
            participant.stop(str(stopped))
        if (
            gone is None
            and not job.settings.keep_going
            and (gone := progress.no_answer) is not None
        ):
            participant.abort(f"no answer from {gone.refused_s:.1f} s on: {gone.why}")
        if (why := liveness.add(progress)) is not None:
            participant.abort(why)

    def use_key() -> None:
        settings = job.settings
        participant.use(target.request_targets(settings, job.header.model))
        if job.scraping is not None:
            headers = {target.base_url(alone): target.headers(alone) for alone in settings.apart()}
            scraper.use(job.scraping.with_headers(headers))

    renewal = KeyRenewal(job.settings.api_key_command, participant.progress, use_key)
    async with MetricsScraper(job.scraping, scraper_process) as scraper:
        await participant.begin(job)
        await prepared
        calls = ServerCalls(job.settings, running if has_sources else None)
        watch()
        async with background_tasks(repeat(job.progress_period_s, watch), renewal.keep()):
            # Before anything is sent, since a server may have no call for it.
            await calls.empty_caches()
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
        liveness.close(progress.elapsed_s)
        if (
            gone is None
            and progress.contacts
            and all(contact.refusing for contact in progress.contacts)
        ):
            gone = max(progress.contacts, key=lambda contact: contact.refused_s or 0.0)
        on_progress(structs.replace(progress, phase=DONE))
    if stopped is None and conditions.never_judged:
        names = ", ".join(conditions.never_judged)
        logger.warning(
            "--stop-when: %s was not judged in this run: it was too short, or too few requests "
            "ended",
            names,
        )
    participant.release()  # before the result is made, which takes as much memory as a worker
    snapshot = measurement.snapshot
    trailer = measurement.trailer
    if not snapshot.ended and any(worker.lost for worker in trailer.workers):
        raise LoadgenError(f"{snapshot.partial}: nothing of the run is left")
    telemetry = Telemetry.left_in(
        job.folder, start_ns, job.scraping.missing if job.scraping else ()
    )
    trailer = structs.replace(
        trailer,
        telemetry=telemetry,
        calls=tuple(calls.made),
        facts=trailer.facts
        | ({"key_renewals": renewal.count} if renewal.count else {})
        | liveness_fact(liveness.silences),
        no_answer_since_s=None if gone is None else gone.refused_s,
        stopped=stopped,
    )
    measurement = structs.replace(measurement, trailer=trailer)
    if job.records is None or trailer.records_error:
        return measurement
    # In a thread: it takes seconds for many requests, and the loop may be the caller's.
    error = await asyncio.to_thread(
        write_trailer, job.records, trailer, LoopTotals.of(snapshot), job.settings.records
    )
    return measurement.with_records_error(error)


class StopConditions:
    """The conditions of `--stop-when`: looks at the progress of a run once a second, so they cost
    nothing per request.

    Args:
        settings: The settings with the conditions.

    Raises:
        BadInput: A condition is invalid.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._conditions = (
            StopCondition.parse(settings.stop_when) if settings.stop_when is not None else ()
        )
        self._longest_s = max(
            (condition.over_s or 0.0 for condition in self._conditions), default=0.0
        )
        self._seen = deque([START])
        self._judged = set[StopCondition]()

    def add(self, progress: Progress) -> StopEvent | None:
        """Look at a progress report, unless the last look was less than a second ago.

        Args:
            progress: How far the run is.

        Returns:
            The first condition that holds now; None if none does, or it is too early to look.
        """
        if not self._conditions or progress.phase != "running":
            return None
        if progress.elapsed_s < self._seen[-1].elapsed_s + STOP_CHECK_S:
            return None
        self._seen.append(progress)
        while (
            self._seen[1].elapsed_s <= progress.elapsed_s - self._longest_s and len(self._seen) > 2
        ):
            self._seen.popleft()
        for condition in self._conditions:
            value = self._value(condition, progress)
            if value is not None:
                self._judged.add(condition)
            if value is not None and not condition.limit.met_by(value):
                return StopEvent(
                    condition.text, progress.elapsed_s, None if math.isinf(value) else value
                )
        return None

    @property
    def never_judged(self) -> list[str]:
        """The conditions for which too little was measured whenever they were looked at."""
        return [condition.text for condition in self._conditions if condition not in self._judged]

    def _value(self, condition: StopCondition, now: Progress) -> float | None:
        """Return the value that a condition limits; None if too little has been measured."""
        before = START
        if condition.over_s is not None:
            if now.elapsed_s < condition.over_s:
                return None
            before = next(
                seen
                for seen in reversed(self._seen)
                if seen.elapsed_s <= now.elapsed_s - condition.over_s
            )
        limit = condition.limit
        failed = now.failed - before.failed
        if limit.metric == ERRORS:
            return failed
        if limit.name in RATES:
            left = ended_by(now.failures, Cause.USER) - ended_by(before.failures, Cause.USER)
            ended = now.ended - before.ended - left
            return failed / ended if ended >= condition.min_values else None
        sketch: Sketch = getattr(now, limit.metric) - getattr(before, limit.metric)
        if limit.of_survivors:
            failed = 0
        if sketch.count + failed < condition.min_values:
            return None
        if limit.statistic == "mean":
            return sketch.mean_ms
        # Failed requests are beyond all values.
        percentile = 100.0 if limit.percentile is None else limit.percentile
        position = (sketch.count + failed - 1) * percentile / 100
        if math.ceil(position) >= sketch.count:
            return math.inf if failed else None
        low = sketch.value_at_rank(math.floor(position))
        high = sketch.value_at_rank(math.ceil(position))
        return (low + (high - low) * (position % 1)) / 1e6
