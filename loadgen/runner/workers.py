"""Workers: processes that share the requests of a run, each with an event loop of its own.

Light to import, as `measurer` is.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from loadgen.config.settings import RunSettings
from loadgen.errors import WorkerDied
from loadgen.metrics.progress import PHASES, Progress
from loadgen.runner.coordinator import conduct
from loadgen.runner.participant import Group, Proxy
from loadgen.util import machine
from loadgen.util.child_process import ChildProcess

if TYPE_CHECKING:
    from loadgen.runner.measurement import Job, Measured

logger = logging.getLogger("loadgen")
# Eight bear a million tokens a second, more than one server gives.
MOST_OF_AUTO = 8
PATIENCE_S = 15.0  # for what a worker has measured, once it has been told to end


class Worker(ChildProcess, Proxy):
    """Carries out one stripe in a process of its own, so that drawing and reporting cost its loop nothing."""

    job: "Job"
    workers = 1

    def __init__(self) -> None:
        super().__init__("loadgen.runner.worker_main")

    def begin(self, job: "Job") -> None:
        """Hand the job over; connections are opened at once."""
        self.job, self._progress = job, Progress(PHASES[0])
        self._said = self.messages()
        self.send(job)

    def progress(self) -> Progress:
        """As it has told it last."""
        return self._progress

    def stop(self, reason: str) -> None:
        """Tell it to send nothing more."""
        self.send(("stop", reason))

    def abort(self, reason: str) -> None:
        """Tell it to end; one that does not answer any more is killed."""
        self.send(("abort", reason))
        asyncio.get_running_loop().call_later(PATIENCE_S, self.kill)

    async def step(self, name: str, *arguments: Any) -> Any:
        """See `Proxy`."""
        self.send((name, *arguments))
        async for message in self._said:
            if not isinstance(message, Progress):
                return message
            self._progress = message
        stripe = self.job.stripe
        who = "the measuring process" if stripe.count == 1 else f"worker {stripe.index + 1} of {stripe.count}"
        raise WorkerDied(who, await self.wait_ended())


class Workers(Group[Worker]):
    """So many processes that measure, running while the context lasts."""

    def __init__(self, workers: int) -> None:
        if workers > (cores := machine.usable_cores()):
            wait = "--workers: %d processes share %d cores, and wait for each other; ask for fewer, or for auto"
            logger.warning(wait, workers, cores)
        super().__init__([Worker() for _ in range(workers)], workers)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for worker in self._parts:
                await stack.enter_async_context(worker)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()
        self.clear()

    def begin(self, job: "Job") -> None:
        """Share a job among them; connections are opened at once."""
        pids = [worker.pid for worker in self._parts]
        for worker, own in self.shared(job):
            worker.begin(replace(own, sibling_pids=tuple(pid for pid in pids if pid != worker.pid)))

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: Callable[[Progress], None]
    ) -> "Measured":
        """Have them carry out a job."""
        self.begin(job)
        return await conduct(self, prepared, on_progress)


def count(settings: RunSettings) -> int:
    """How many workers are to share a run with these settings, which have been checked.

    auto: one for each core but one, which is left to the command, to the kernel's part in the network and to a server
    on this machine; no more than there are requests to share, or than `MOST_OF_AUTO`.
    """
    if settings.workers != "auto":
        return int(settings.workers)
    if settings.capture is not None:  # one process keeps the responses
        return 1
    return auto(machine.usable_cores(), settings.max_concurrency, settings.num_prompts)


def auto(cores: int, *most: int | None) -> int:
    """How many workers so many cores are good for, none of the limits exceeded."""
    bounds = (cores - 1, MOST_OF_AUTO, *most)
    return max(1, min(int(bound) for bound in bounds if bound is not None))
