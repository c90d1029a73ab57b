"""Workers: processes that share the requests of a run, each with an event loop of its own."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.errors import WorkerDied
from loadgen.metrics.progress import Progress
from loadgen.runner.participant import Command, Group, Participant, Proxy
from loadgen.util import machine
from loadgen.util.child_process import ChildProcess

logger = logging.getLogger("loadgen")
MAX_AUTO_WORKERS = 8  # they receive a million tokens a second, more than one server generates
MODULE = "loadgen.runner.worker_main"
PATIENCE_S = 15.0  # for the measurement of a worker, after the command to end


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
        """Have the process take a step, whose result follows its progress."""
        self._child.send((step, *arguments))
        async for message in self._messages:
            if not isinstance(message, Progress):
                return message
            self._progress = message
        part = self.job.partition
        name = (
            "the measuring process"
            if part.count == 1
            else f"worker {part.index + 1} of {part.count}"
        )
        raise WorkerDied(name, await self._child.wait_ended())

    def send(self, command: Command, argument: Any) -> None:
        """Send a command; a process that does not end upon `abort` is killed."""
        self._child.send((command, argument))
        if command == "abort":
            asyncio.get_running_loop().call_later(PATIENCE_S, self._child.kill)

    def release(self) -> None:
        """End the process."""
        self._child.kill()


@contextlib.asynccontextmanager
async def open_workers(count: int) -> AsyncIterator[Participant]:
    """Start worker processes, which run as long as the context.

    Args:
        count: Number of processes.

    Yields:
        The worker, or the group of several.
    """
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
    cores = machine.usable_cores()
    if workers > cores:
        wait = (
            "--workers: %d processes share %d cores, and wait for each other; ask for fewer, "
            "or for auto"
        )
        logger.warning(wait, workers, cores)


def worker_count(settings: RunSettings) -> int:
    """Return how many workers share a run.

    auto: one for each core but one, which is left to the command, to the kernel's part in the
    network and to a server on this machine; no more than there are requests to share, or than
    `MAX_AUTO_WORKERS`.

    Args:
        settings: The settings of the run, checked.
    """
    if settings.workers != "auto":
        return int(settings.workers)
    if settings.capture is not None:  # one process keeps the responses
        return 1
    return auto_workers(machine.usable_cores(), settings.max_concurrency, settings.requests)


def auto_workers(cores: int, *limits: int | None) -> int:
    """Return how many workers `auto` means.

    Args:
        cores: Number of usable cores.
        limits: Further limits of the number; None is no limit.
    """
    bounds = (cores - 1, MAX_AUTO_WORKERS, *limits)
    return max(1, min(int(bound) for bound in bounds if bound is not None))
