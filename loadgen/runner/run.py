"""Carries out one run in the caller's event loop: from settings to a result."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.config.data import BUILT_IN_TOKENIZER, NO_TOKENIZER
from loadgen.config.option import flag
from loadgen.config.request_class import CLASS
from loadgen.config.settings import RunSettings, is_bounded_by_time, seed_of
from loadgen.config.validate import check_share
from loadgen.engines.launch import ports
from loadgen.errors import within
from loadgen.metrics.progress import OnProgress, Progress
from loadgen.metrics.records.header import DATE_FORMAT, RunHeader, provenance
from loadgen.metrics.server.series import ScrapeOrder
from loadgen.runner import key_renewal
from loadgen.runner.coordinator import coordinate, open_participant
from loadgen.runner.job import PROGRESS_S, Job
from loadgen.runner.metrics_scraper import ScraperProcess
from loadgen.runner.metrics_scraper_main import scrape_order
from loadgen.runner.participant import Participant
from loadgen.runner.preparer import PrepareOrder, Preparer, check, prepare
from loadgen.runner.server import Server, probe
from loadgen.runner.start_engine import start_engine_server
from loadgen.util import files, key_command
from loadgen.workload import datasets, request_store
from loadgen.workload.arrivals import DEFAULT_COUNT, Schedule
from loadgen.workload.datasets.prompt_count import with_known_count
from loadgen.workload.due_times import DueTimes
from loadgen.workload.prefix_cache.cache_block import CacheBlock
from loadgen.workload.prompt import Dataset
from loadgen.workload.target import Target, request_targets
from loadgen.workload.tokenizer import tokenizer as tokenizers

if TYPE_CHECKING:
    from loadgen.runner.run_result import Result


async def run(
    settings: RunSettings,
    *,
    server: Server | None = None,
    dataset: Dataset | None = None,
    on_progress: OnProgress = lambda progress: None,
    progress_period_s: float = PROGRESS_S,
    participant: Participant | None = None,
    preparer: Preparer | None = None,
    scraper: ScraperProcess | None = None,
    journal: Path | None = None,
) -> "Result":
    """Carry out one run in the running event loop.

    Cancelling it ends every request and leaves no result; what had ended by then is kept only if
    `settings.records` or `journal` names a file, of which `from_records` makes a partial one.

    Args:
        settings: What to do, checked.
        server: The server, if it serves already, with the settings of this run as they are for it.
        dataset: Prompts of the caller, instead of those that the settings name.
        on_progress: Called whenever the progress is reported, and before that a few times a second.
        progress_period_s: How often participants report their progress, s.
        participant: Carries out the run, if the caller has opened it; by default the running loop,
            or the processes and machines that the settings ask for.
        preparer: The process that prepares the prompts of the settings, if it was started already.
        scraper: The process that asks the servers beside the load, if it was started already.
        journal: A file for the records, of bounded size, if the settings name none: what is left of
            a run whose measuring process dies.

    Returns:
        The result of the run, with its checks.

    Raises:
        BadInput: A setting that cannot be used; nothing was sent.
        Unreachable: No server where the settings say, or at one of several places.
    """
    requested = settings
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(files.scratch_folder())
        if server is None:
            opened = await stack.enter_async_context(
                serving(requested, on_progress, own_data=dataset is not None)
            )
            server = opened.for_first_run()
        await key_renewal.ensure(requested.api_key_command)
        if participant is None:
            participant = await stack.enter_async_context(
                open_participant(requested, own_loop=True)
            )
        settings = server.settings.implied(workers=participant.workers)
        check_share(settings.max_concurrency, participant.workers, settings.ray_nodes or 1)
        settings = with_known_count(settings, dataset)
        find = scrape_order if scraper is None else scraper.scrape_order
        scraping = await find(
            settings, folder, simulated=server.simulated and bool(server.processes)
        )
        schedule: DueTimes = Schedule.from_settings(settings, seed_of(settings, "arrivals"))
        request_store.write_schedule(folder, schedule)
        order = PrepareOrder(
            settings,
            Target.from_settings(settings, server.model),
            # if time alone bounds the run, only some before the clock starts
            min(schedule.count, DEFAULT_COUNT) if is_bounded_by_time(settings) else schedule.count,
            folder,
            server.template_tokens,
            further=dataset is None and is_bounded_by_time(settings),
            cache_block=_cache_block(settings, scraping),
        )
        source = dataset if dataset is not None else preparer
        if source is None:
            source = await stack.enter_async_context(Preparer(keep=True))
        preparing = await stack.enter_async_context(_preparing(order, source, on_progress))
        ahead = source if order.further and isinstance(source, Preparer) else None
        header = RunHeader(
            settings,
            server.model,
            time.strftime(DATE_FORMAT),
            server.simulated,
            provenance(settings, requested, server.about),
        )
        records = Path(settings.records) if settings.records else journal
        if records is not None and records.exists() and not records.is_file():
            records = folder / "journal"  # a pipe or a device gets the lines at the end
        job = Job(
            header,
            request_targets(settings, server.model),
            folder,
            engine_pids=tuple(process.pid for process in server.processes),
            records=records,
            scraping=scraping,
            server_pids=()
            if server.processes
            else await asyncio.to_thread(ports.servers, settings.urls, settings.unix_socket),
            helper_pids=(os.getpid(), *(() if ahead is None else (ahead.pid,))),
            progress_period_s=progress_period_s,
        )

        def report(progress: Progress) -> None:
            if ahead is not None:
                ahead.keep_ahead(progress)
            on_progress(progress)

        measurement = await coordinate(
            participant, job, preparing, report, scraper, server.processes
        )
        # 90 ms of CPU time, not before the run has begun
        from loadgen.runner.run_result import conclude, kept_records

        if server.processes:
            header = header.with_engine(trouble=await asyncio.to_thread(_trouble, server.processes))
        schedule = request_store.schedule(folder)
        header = header.with_requests(request_store.read_about(folder), schedule.about())
        kept = kept_records(records, measurement)
        return await asyncio.to_thread(conclude, header, schedule, measurement, kept)


@contextlib.asynccontextmanager
async def serving(
    settings: RunSettings,
    on_progress: OnProgress = lambda progress: None,
    *,
    own_data: bool = False,
    scraper: ScraperProcess | None = None,
) -> AsyncIterator[Server]:
    """Open the server that settings name: probe it, or start its engines and stop them after the
    context.

    Args:
        settings: The settings, checked.
        on_progress: Called a few times a second.
        own_data: Whether the prompts are those of the caller, so that no data set need be opened
            meanwhile.
        scraper: The process that asks the servers beside the load, where it was started already.

    Yields:
        The server, with the settings of the run as they are for it.

    Raises:
        BadInput: A setting that cannot be used; nothing was sent.
        Unreachable: No server where the settings say, or at one of several places.
        EngineError: An engine does not answer, or something of it is left after it was stopped.
    """
    if not own_data:
        _check_data(settings)
    if settings.api_key_command is not None:
        await key_command.renew(settings.api_key_command)
    if settings.engine is not None:
        early_check = (lambda settings: None) if own_data else check
        async with start_engine_server(settings, early_check, on_progress) as server:
            yield server
    else:
        yield await (probe if scraper is None else scraper.probe)(settings, on_progress)


def _cache_block(settings: RunSettings, scraping: ScrapeOrder | None) -> CacheBlock:
    """Return the unit of the prefix cache: of the settings, of the metrics of a server, or what
    most servers have.
    """
    if settings.cache_block_size is not None:
        return CacheBlock(settings.cache_block_size, flag("cache_block_size"))
    return (scraping.cache_block if scraping else None) or CacheBlock()


def _check_data(settings: RunSettings) -> None:
    """Refuse data sets and a tokenizer that cannot be used, as far as this shows without opening
    them.

    Raises:
        BadInput: It does not exist, or a setting has no effect on it.
    """
    classes = settings.request_classes
    if not all(request_class.data for request_class in classes) or not classes:
        datasets.check(settings)
    for request_class in classes:
        if request_class.data:
            with within(CLASS, request_class.name):
                datasets.check(settings.of_class(request_class))
    datasets.check_sessions(settings, [settings, *map(settings.of_class, classes)])
    if settings.tokenizer not in (None, NO_TOKENIZER, BUILT_IN_TOKENIZER):
        tokenizers.checked_path(settings.tokenizer)


def _trouble(processes: Sequence[Any]) -> str | None:
    """Describe the crashes of engines, each with its URL if there are several; None if there are
    none.
    """
    lines = []
    for process in processes:
        error = process.trouble()
        if error:
            url = f"{process.base_url} " if len(processes) > 1 else ""
            lines.append(f"{url}{error.crash.kind}: {error.crash.cause}; its log is {error.log}")
    return "; ".join(lines) or None


@contextlib.asynccontextmanager
async def _preparing(
    order: PrepareOrder, source: Dataset | Preparer, on_progress: OnProgress
) -> "AsyncIterator[asyncio.Future[Any]]":
    """Have the requests of a run prepared while the context lasts; yields a future that is done
    when they are.
    """
    work: Coroutine[Any, Any, Any]
    if isinstance(source, Preparer):
        work = source.prepare(order, on_progress)
    else:  # a caller's own data set is read in a thread: another process cannot see it
        work = asyncio.to_thread(prepare, order, source)
    task = asyncio.ensure_future(work)
    try:
        await asyncio.sleep(0)  # so that the order is sent before the caller does anything else
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if isinstance(source, Preparer):
            await source.stop()  # before the folder is removed that it writes to
