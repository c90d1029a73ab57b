"""The Ray actor of one machine of a cluster: its workers, which take steps as the coordinating
machine asks.

Clocks of machines are never compared: the actor receives the time to wait, and starts on its own
clock.
"""

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from loadgen.errors import LoadgenError
from loadgen.metrics.progress import Progress
from loadgen.metrics.records.shards import shard_path
from loadgen.metrics.run_data import Measurement
from loadgen.runner.job import Job
from loadgen.runner.participant import Command, Step
from loadgen.runner.workers import open_workers
from loadgen.util import files
from loadgen.util.clock import now_ns
from loadgen.workload.request_store import SCHEDULE

T = TypeVar("T")


class Node:
    """Carries out one partition with workers of its own; a step that fails returns its error."""

    def __init__(self) -> None:
        self._stack = contextlib.AsyncExitStack()

    async def begin(self, job: Job, workers: int, schedule: bytes) -> LoadgenError | None:
        """Take a job, whose requests are written later, and start its workers.

        Args:
            job: The share of this machine, with paths of the coordinating machine.
            workers: Number of workers to start.
            schedule: The content of the schedule's file.
        """
        self._folder = self._stack.enter_context(files.scratch_folder())
        await self.write(SCHEDULE, schedule, begins=True)
        self._workers = await self._stack.enter_async_context(open_workers(workers))
        self._records = None if job.records is None else self._folder / "journal"
        # Processes of the coordinating machine have no ids here.
        node_job = replace(
            job, folder=self._folder, records=self._records, server_pids=(), helper_pids=()
        )
        return await _or_error(self._workers.begin(node_job))

    async def write(self, name: str, data: bytes, begins: bool) -> None:
        """Write a piece of a file of the requests.

        Args:
            name: The name of the file.
            data: The piece.
            begins: Whether it is the first piece, which replaces the file.
        """
        with open(self._folder / Path(name).name, "wb" if begins else "ab") as file:  # noqa: ASYNC230 - nothing else waits
            file.write(data)

    async def call(self, step: Step) -> LoadgenError | None:
        """Take a step before the clock starts."""
        return await _or_error(self._workers.take(step))

    async def carry_out(self, delay_ns: int) -> Measurement | LoadgenError:
        """Take the last step.

        Args:
            delay_ns: From this call to the start of the clock, ns.
        """
        return await _or_error(self._workers.carry_out(now_ns() + delay_ns))

    async def read(self, index: int, offset: int, size: int) -> bytes:
        """Read a piece of the journal of the partition with this index; empty at its end."""
        assert self._records is not None
        with open(shard_path(self._records, index), "rb") as file:  # noqa: ASYNC230 - the run has ended
            file.seek(offset)
            return file.read(size)

    async def progress(self) -> Progress:
        """Return how far the workers are."""
        return self._workers.progress()

    async def send(self, command: Command, argument: Any) -> None:
        """Pass a command on to the workers."""
        getattr(self._workers, command)(argument)

    async def close(self) -> None:
        """Stop the workers, and remove all files."""
        await self._stack.aclose()


async def _or_error(step: Awaitable[T]) -> T | LoadgenError:
    """Return the result of a step, or its error: Ray would wrap an error that is raised."""
    try:
        return await step
    except LoadgenError as error:
        return error


def facts_by_value() -> Callable[[], dict[str, Any]]:
    """Return a function that describes a machine; Ray sends it by value, since the machine may
    have no loadgen.
    """

    def facts() -> dict[str, Any]:
        """Return the version of loadgen (None: not installed), and how many cores its processes
        may use.
        """
        import importlib.metadata  # inside, since the function is sent by value
        import os

        try:
            version = importlib.metadata.version("loadgen")
        except importlib.metadata.PackageNotFoundError:
            version = None
        usable = (
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        )
        return {"loadgen": version, "cores": usable}

    return facts
