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
from loadgen.errors import LoadgenError
from loadgen.evidence import Evidence
from loadgen.measurement import Job, Measured, Progress
from loadgen.measurer import Measurer, OwnLoop
from loadgen.preparing import Order, prepare
from loadgen.prompts import Dataset
from loadgen.schedule import DEFAULT_COUNT, Schedule
from loadgen.server import Server, running, simulator, wants_simulator
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
) -> Result:
    """Carry out one run in the running event loop.

    Args:
        settings: What to do; by default, and with no server named, the built-in simulator is measured.
        dataset: Prompts of your own, instead of the ones the settings name.
        on_progress: Called a few times a second.
        measurer: Who measures: the running loop itself, unless the command line has a process for it.

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
        target = Target.from_settings(resolved, server.model)
        job = Job(resolved, target, folder, engine_pid=server.process.pid if server.process else None)
        date = time.strftime("%Y%m%d-%H%M%S")
        measured = await (measurer or OwnLoop()).measure(job, preparing, on_progress)
        prompts = requests.about(folder)
        origin = provenance.provenance(resolved, asked, schedule, prompts, server.about)
        return conclude(resolved, server, schedule, measured, origin, date)


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


def conclude(
    settings: RunSettings, server: Server, schedule: Schedule, measured: Measured, origin: dict[str, Any], date: str
) -> Result:
    """Check what was measured, and make the result."""
    evidence = Evidence(
        settings=settings,
        schedule=schedule,
        snapshot=measured.snapshot,
        client=measured.client,
        provenance=origin,
        model=server.model,
        date=date,
        simulated=server.simulated,
        same_schedule=measured.schedule_sha256 == schedule.sha256,
        same_engine=server.same_process,
    )
    return Result(report.build(evidence, checks.examine(evidence)), measured.snapshot)
