"""Node: the workers of one machine of a cluster, told what to do by whoever conducts the run from another.

It runs there, and knows nothing of who carries its messages. Clocks of machines are never compared: it is told how long
to wait, and starts on its own.
"""

import contextlib
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from loadgen.errors import LoadgenError
from loadgen.metrics.progress import Progress
from loadgen.runner.measurement import Job, Measured
from loadgen.runner.participant import STEPS
from loadgen.runner.workers import Workers
from loadgen.util import scratch_dir
from loadgen.util.clock import now_ns

T = TypeVar("T")


class Node:
    """Carries out one stripe with workers of its own; a step that fails returns its error."""

    def __init__(self) -> None:
        self._stack = contextlib.AsyncExitStack()

    async def begin(self, job: Job, workers: int) -> None:
        """Take a job, whose requests will be given, and start its workers."""
        self._folder = self._stack.enter_context(scratch_dir.scratch_folder())
        self._workers = await self._stack.enter_async_context(Workers(workers))
        records = None if job.records is None else self._folder / "records.jsonl"
        self._workers.begin(replace(job, folder=self._folder, records=records, preparer_pid=None))

    async def write(self, name: str, data: bytes) -> None:
        """Add to a file of the requests."""
        with open(self._folder / Path(name).name, "ab") as file:  # noqa: ASYNC230 - nothing else waits here
            file.write(data)

    async def step(self, name: str) -> LoadgenError | None:
        """One of STEPS, but for the last."""
        assert name in STEPS[:-1]
        error: LoadgenError | None = await _or_error(getattr(self._workers, name)())
        return error

    async def carry_out(self, delay_ns: int) -> Measured | LoadgenError:
        """See `Part`; the clock starts so much later than this is called."""
        return await _or_error(self._workers.carry_out(now_ns() + delay_ns))

    async def read(self, offset: int, size: int) -> bytes:
        """A piece of the records; empty at their end."""
        records = self._workers.job.records
        assert records is not None
        with open(records, "rb") as file:  # noqa: ASYNC230 - the run has ended
            file.seek(offset)
            return file.read(size)

    async def progress(self) -> Progress:
        """See `Part`."""
        return self._workers.progress()

    async def stop(self, reason: str) -> None:
        """See `Part`."""
        self._workers.stop(reason)

    async def abort(self, reason: str) -> None:
        """See `Part`."""
        self._workers.abort(reason)

    async def end(self) -> None:
        """Leave nothing behind."""
        await self._stack.aclose()


async def _or_error(step: Awaitable[T]) -> T | LoadgenError:
    try:
        return await step
    except LoadgenError as error:
        return error
