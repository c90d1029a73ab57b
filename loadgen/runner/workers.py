"""Workers: processes that share the requests of a run, each with an event loop of its own.

Light to import, as `participant` is.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.errors import WorkerDied
from loadgen.metrics.progress import Progress
from loadgen.runner.participant import Group, Participant, Proxy
from loadgen.util import machine
from loadgen.util.child_process import ChildProcess

logger = logging.getLogger("loadgen")
# Eight bear a million tokens a second, more than one server gives.
MAX_AUTO_WORKERS = 8
MODULE = "loadgen.runner.worker_main"
PATIENCE_S = 15.0  # for what a worker has measured, after the command to end


class WorkerProxy(Proxy):
    """A loop in a process of its own, so that drawing and reporting cost it nothing.

    Args:
        child: The process, which runs `worker_main`; it has to be started before it is used.
    """

    def __init__(self, child: ChildProcess) -> None:
        super().__init__()
        self._child = child
        self._messages = child.messages()

    @property
    def pid(self) -> int:
        """The process."""
        return self._child.pid

    async def call(self, step: str, *arguments: Any) -> Any:
        """Have a step taken; progress comes before its result."""
        self._child.send((step, *arguments))
        async for message in self._messages:
            if not isinstance(message, Progress):
                return message
            self._progress = message
        part = self.job.partition
        who = "the measuring process" if part.count == 1 else f"worker {part.index + 1} of {part.count}"
        raise WorkerDied(who, await self._child.wait_ended())

    def send(self, command: str, reason: str) -> None:
        """Send a command; a process that does not end upon `abort` is killed."""
        self._child.send((command, reason))
        if command == "abort":
            asyncio.get_running_loop().call_later(PATIENCE_S, self._child.kill)

    def release(self) -> None:
        """End the process."""
        self._child.kill()


@contextlib.asynccontextmanager
async def open_workers(count: int) -> AsyncIterator[Participant]:
    """Start this many worker processes, which run as long as the context; several are a group."""
    warn_of_cores(count)
    async with contextlib.AsyncExitStack() as stack:
        children = [ChildProcess(MODULE) for _ in range(count)]
        workers = [WorkerProxy(child) for child in children]
        group = Group(workers, count)
        stack.callback(group.clear)
        for child in children:
            await stack.enter_async_context(child)
        yield workers[0] if count == 1 else group


def warn_of_cores(workers: int) -> None:
    """Log a warning where there are more workers than cores."""
    if workers > (cores := machine.usable_cores()):
        wait = "--workers: %d processes share %d cores, and wait for each other; ask for fewer, or for auto"
        logger.warning(wait, workers, cores)


def worker_count(settings: RunSettings) -> int:
    """Return how many workers share a run with these settings, which have been checked.

    auto: one for each core but one, which is left to the command, to the kernel's part in the network and to a server
    on this machine; no more than there are requests to share, or than `MAX_AUTO_WORKERS`.
    """
    if settings.workers != "auto":
        return int(settings.workers)
    if settings.capture is not None:  # one process keeps the responses
        return 1
    return auto_workers(machine.usable_cores(), settings.max_concurrency, settings.requests)


def auto_workers(cores: int, *limits: int | None) -> int:
    """Return how many workers suit this many cores, within limits of which None is no limit."""
    bounds = (cores - 1, MAX_AUTO_WORKERS, *limits)
    return max(1, min(int(bound) for bound in bounds if bound is not None))
