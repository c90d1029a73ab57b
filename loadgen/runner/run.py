"""Runner: from settings to a result, in the caller's event loop."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput
from loadgen.metrics import provenance
from loadgen.metrics.progress import Progress
from loadgen.metrics.records.header import Heading
from loadgen.runner import coordinators, metrics_scraper
from loadgen.runner.coordinator import Measurer
from loadgen.runner.engine_session import started_engine, wants_engine
from loadgen.runner.measurement import Job
from loadgen.runner.prepare import Preparer
from loadgen.runner.prepare_main import Order, check, prepare
from loadgen.runner.run_result import Result, conclude
from loadgen.runner.server import Server
from loadgen.runner.targets import described, running
from loadgen.util import scratch_dir
from loadgen.workload import request_store
from loadgen.workload.arrivals import DEFAULT_COUNT, Schedule, is_bounded_by_time
from loadgen.workload.prompt import Dataset
from loadgen.workload.target import Target

OnProgress = Callable[[Progress], None]


async def run(
    settings: RunSettings | None = None,
    *,
    server: Server | None = None,
    dataset: Dataset | None = None,
    on_progress: OnProgress = lambda progress: None,
    measurer: Measurer | None = None,
    preparer: Preparer | None = None,
    journal: Path | None = None,
) -> Result:
    """Carry out one run in the running event loop.

    Cancelling it ends every request and leaves no result; what had ended by then is kept only where `settings.records`
    or `journal` names a file, of which `from_records` makes a partial one.

    Args:
        settings: What to do; by default, and with no server named, the built-in simulator is measured.
        server: Who is measured, where it serves already, with the settings of this run as they are for it.
        dataset: Prompts of your own, instead of the ones the settings name.
        on_progress: Called a few times a second.
        measurer: Who measures: the running loop itself, or the processes and machines that the settings ask for,
            unless the caller has others for it.
        preparer: Who makes the prompts that the settings name, where it has been started already.
        journal: A file for the records, of bounded size, where the settings name none: what is left of a run whose
            measuring process dies.

    Raises:
        BadInput: A setting that cannot be used; nothing was sent.
        Unreachable: No server where the settings say, or at one of several places.
    """
    asked = (settings or RunSettings()).checked()
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(scratch_dir.folder())
        if server is None:
            server = await stack.enter_async_context(serving(asked, on_progress, own_data=dataset is not None))
        return await measure(
            server,
            asked,
            folder,
            dataset=dataset,
            on_progress=on_progress,
            measurer=measurer,
            preparer=preparer,
            journal=journal,
        )


@contextlib.asynccontextmanager
async def serving(
    asked: RunSettings, on_progress: OnProgress = lambda progress: None, *, own_data: bool = False
) -> AsyncIterator[Server]:
    """The server that settings name: probed, or started and in the end put away.

    Args:
        asked: The settings, checked.
        on_progress: Called a few times a second.
        own_data: Whether the prompts are those of the caller, so that no data set need be looked at meanwhile.

    Raises:
        BadInput: A setting that cannot be used; nothing was sent.
        Unreachable: No server where the settings say, or at one of several places.
        EngineError: It does not answer, or something of it is left in the end.
    """
    if wants_engine(asked):
        early = check if asked.engine and not own_data else lambda settings: None
        async with started_engine(asked, early, on_progress) as server:
            yield server
    else:
        yield await running(asked, on_progress)


async def measure(
    server: Server,
    asked: RunSettings,
    folder: Path,
    *,
    dataset: Dataset | None = None,
    on_progress: OnProgress = lambda progress: None,
    measurer: Measurer | None = None,
    preparer: Preparer | None = None,
    journal: Path | None = None,
) -> Result:
    """Measure a server that answers.

    Args:
        server: Which, with the settings of the run as they are for it.
        asked: The settings as they were given.
        folder: For the run's own files; empty.
        dataset, on_progress, measurer, preparer, journal: See `run`.

    Raises:
        BadInput: A setting that cannot be used; nothing was sent.
    """
    async with AsyncExitStack() as stack:
        if measurer is None:
            measurer = await stack.enter_async_context(coordinators.of(asked, own_loop=True))
        resolved = server.settings.implied().replace(workers=measurer.workers).checked()
        asking = await metrics_scraper.order(resolved, folder, simulated=server.simulated and bool(server.processes))
        schedule = Schedule.from_settings(resolved, seed_of(resolved, "arrivals"))
        order = Order(
            resolved,
            Target.from_settings(resolved, server.model),
            prompts_needed(resolved, schedule),
            folder,
            server.overhead,
            further=dataset is None and is_bounded_by_time(resolved),
        )
        if dataset is not None:  # a caller's own is made in a thread: it is not for another process to see
            made = _prepared_here(order, dataset)
        else:
            if preparer is None:
                preparer = await stack.enter_async_context(Preparer())
            made = preparer.prepare(order, on_progress)
        preparing = asyncio.ensure_future(made)
        stack.push_async_callback(_ended, preparing)
        heading = Heading(
            resolved,
            server.model,
            time.strftime("%Y%m%d-%H%M%S"),
            server.simulated,
            provenance.provenance(resolved, asked, server.about),
        )
        pids = tuple(process.pid for process in server.processes)
        targets = described(resolved, server.model)
        records = Path(resolved.records) if resolved.records else journal
        job = Job(heading, targets, folder, engine_pids=pids, records=records, scraping=asking)
        if order.further and preparer is not None:
            job = replace(job, preparer_pid=preparer.pid)
            on_progress = _both(preparer.reached, on_progress)
        measured = await measurer.measure(job, preparing, on_progress)
        if server.processes:
            heading = heading.with_engine(trouble=await asyncio.to_thread(_trouble, server.processes))
        schedule = Schedule.from_settings(resolved, seed_of(resolved, "arrivals"), request_store.asked(folder))
        return conclude(heading.with_requests(request_store.about(folder), schedule.about()), schedule, measured)


def _trouble(processes: Sequence[Any]) -> str | None:
    """What is wrong with engines after the run, None if nothing is."""
    where = [f"{process.base_url} " if len(processes) > 1 else "" for process in processes]
    failed = [(one, error) for one, process in zip(where, processes, strict=True) if (error := process.trouble())]
    told = [f"{where}{error.crash.kind}: {error.crash.cause}; its log is {error.log}" for where, error in failed]
    return "; ".join(told) or None


def run_sync(settings: RunSettings | None = None, **options: Any) -> Result:
    """`run` for callers without an event loop: it makes one, on uvloop.

    Raises:
        BadInput: There is one already; or as `run`.
    """
    import uvloop

    with contextlib.suppress(RuntimeError):  # there is none
        asyncio.get_running_loop()
        raise BadInput(
            "run_sync", "an event loop runs here already", "await loadgen.run(...), or loadgen_run_async in a test"
        )
    return uvloop.run(run(settings, **options))


def prompts_needed(settings: RunSettings, schedule: Schedule) -> int:
    """How many requests to prepare before the clock starts: one for each that is due, some where time bounds them."""
    if is_bounded_by_time(settings):
        return min(schedule.count, DEFAULT_COUNT)
    return schedule.count


async def _prepared_here(order: Order, dataset: Dataset) -> None:
    await asyncio.to_thread(prepare, order, dataset)


def _both(first: OnProgress, then: OnProgress) -> OnProgress:
    def told(progress: Progress) -> None:
        first(progress)
        then(progress)

    return told


async def _ended(task: "asyncio.Future[None]") -> None:
    """Cancel a task, and wait until it has ended, however it does."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
