"""Runner: from settings to a result, in the caller's event loop."""

import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen import checks, provenance, report, requests
from loadgen.checks import Verdict
from loadgen.child import Child
from loadgen.client import Client
from loadgen.errors import BadInput, LoadgenError, WorkerDied
from loadgen.evidence import Evidence
from loadgen.heading import Heading
from loadgen.measurement import Job, Measured, Progress
from loadgen.measurer import Measurer, OwnLoop
from loadgen.outcomes import Outcome
from loadgen.preparing import Order, prepare
from loadgen.prompts import Dataset
from loadgen.recorder import Recorder
from loadgen.records import RecordFile
from loadgen.schedule import DEFAULT_COUNT, Schedule
from loadgen.server import running, simulator, wants_simulator
from loadgen.settings import RunSettings, is_closed_loop, seed_of
from loadgen.snapshot import Snapshot
from loadgen.target import Target

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Result:
    """What a run found.

    Attributes:
        data: The result as saved: `vllm bench serve`'s keys, and loadgen's own under "loadgen".
        snapshot: The numbers it was made from.
    """

    data: dict[str, Any]
    snapshot: Snapshot

    @property
    def verdict(self) -> Verdict:
        """Whether to believe it."""
        return Verdict(self.data["loadgen"]["verdict"])

    def __str__(self) -> str:
        return report.render(self.data)


async def run(
    settings: RunSettings | None = None,
    *,
    dataset: Dataset | None = None,
    on_progress: OnProgress = lambda progress: None,
    measurer: Measurer | None = None,
    journal: Path | None = None,
) -> Result:
    """Carry out one run in the running event loop.

    Args:
        settings: What to do; by default, and with no server named, the built-in simulator is measured.
        dataset: Prompts of your own, instead of the ones the settings name.
        on_progress: Called a few times a second.
        measurer: Who measures: the running loop itself, unless the command line has a process for it.
        journal: A file for the records, of bounded size, where the settings name none: what is left of a run whose
            measuring process dies.

    Raises:
        BadInput: A setting that cannot be used; nothing was sent.
        Unreachable: No server where the settings say.
    """
    asked = (settings or RunSettings()).checked()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="loadgen-")))
        if wants_simulator(asked):
            server = await stack.enter_async_context(simulator(asked))
        else:
            server = await running(asked)
        resolved = server.settings.checked()
        schedule = Schedule.from_settings(resolved, seed_of(resolved, "arrivals"))
        order = Order(
            resolved, Target.from_settings(resolved, server.model), prompts_needed(resolved, schedule), folder
        )
        preparing = asyncio.ensure_future(prepare_aside(order, dataset, on_progress))
        stack.push_async_callback(_ended, preparing)
        if server.process is not None:
            resolved = resolved.replace(base_url=await asyncio.to_thread(server.process.ready))
        heading = Heading(
            resolved,
            server.model,
            time.strftime("%Y%m%d-%H%M%S"),
            server.simulated,
            provenance.provenance(resolved, asked, schedule, server.about),
        )
        pid = server.process.pid if server.process else None
        target = Target.from_settings(resolved, server.model)
        job = Job(heading, target, folder, engine_pid=pid, journal=journal)
        try:
            measured = await (measurer or OwnLoop()).measure(job, preparing, on_progress)
        except WorkerDied as died:
            return _left(resolved.records or journal, died)
        about = requests.about(folder)
        return conclude(heading.with_prompts(about), schedule, measured)


def run_sync(settings: RunSettings | None = None, **options: Any) -> Result:
    """`run` for callers without an event loop: it makes one, on uvloop."""
    import uvloop

    return uvloop.run(run(settings, **options))


def prompts_needed(settings: RunSettings, schedule: Schedule) -> int:
    """How many requests to prepare: one for each that is due; where time alone bounds the run, the usual number."""
    if is_closed_loop(settings) and settings.num_prompts is None and settings.duration is not None:
        return min(schedule.count, DEFAULT_COUNT)
    return schedule.count


async def prepare_aside(order: Order, dataset: Dataset | None, on_progress: OnProgress) -> None:
    """Make the requests outside this process, or, from a caller's own data set, outside its event loop."""
    if dataset is not None:
        await asyncio.to_thread(prepare, order, dataset)
        return
    async with Child("loadgen.preparing") as child:
        child.send(order)
        async for done in child.messages():
            if done is None:
                return
            on_progress(Progress("preparing", scheduled=order.count, ended=done))
        raise LoadgenError(f"the process that makes the prompts {await child.end()}")


async def _ended(task: "asyncio.Future[None]") -> None:
    """Cancel a task, and wait until it has ended, however it does."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def from_records(path: str | Path, partial: str | None = None) -> Result:
    """The result of a run from the records it has left, complete or not; what only the process knew is n/a.

    Args:
        path: A file that --records or a run that ended early has written.
        partial: Why there is no more of it, if that is known.

    Raises:
        BadInput: It is no such file.
    """
    file = RecordFile(path)
    settings = file.heading.settings
    schedule = Schedule.from_settings(settings, seed_of(settings, "arrivals"))
    recorder = Recorder.from_settings(settings, file.start_ns, file.scheduled)
    for record in file:
        recorder.add(record)
    client = Client()
    if (ending := file.ending) is not None:
        partial, client, recorder.scheduled = ending.partial, ending.client, ending.scheduled
        recorder.counters["warm_connections"] = ending.warm_connections
        recorder.add_never_sent(ending.never_sent, Outcome.CANCELLED, partial or "")
        for name, histogram in ending.histograms.items():
            recorder.histograms[name].merge(histogram)
    elif partial is None:
        partial = f"{recorder.ended} of {file.scheduled} requests had ended when the records did"
    measured = Measured(recorder.snapshot(partial), file.heading.provenance["schedule"]["sha256"], client)
    return conclude(file.heading, schedule, measured)


def _left(records: str | Path | None, died: WorkerDied) -> Result:
    """What a dead process has left of its run.

    Raises:
        WorkerDied: Nothing.
    """
    try:
        if records is not None:
            return from_records(records, str(died))
    except BadInput:
        pass
    raise WorkerDied(f"{died}: nothing of the run is left") from died


def conclude(heading: Heading, schedule: Schedule, measured: Measured) -> Result:
    """Check what was measured, and make the result."""
    evidence = Evidence(
        heading=heading,
        schedule=schedule,
        snapshot=measured.snapshot,
        client=measured.client,
        same_schedule=measured.schedule_sha256 == schedule.sha256,
    )
    return Result(report.build(evidence, checks.examine(evidence)), measured.snapshot)
