"""Part: whoever carries out a stripe of a run; a group of them is one too."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from loadgen.errors import WorkerDied
from loadgen.metrics.progress import Progress
from loadgen.util.tasks import gather_or_cancel

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.metrics.server.latest import Heard
    from loadgen.runner.measurement import Job, Measured

P = TypeVar("P", bound="Part")


class Part(Protocol):
    """Takes the steps of a `Measurement`: in the running loop, in a process, on another machine, or in many.

    Each step is awaited before the next one begins.

    Attributes:
        job: What it has to do.
        workers: How many loops on each machine share it.
    """

    job: "Job"
    workers: int

    async def check_ready(self) -> None:
        """Take up the requests; see that the servers answer."""

    async def warm_up(self) -> None:
        """Send what is sent off the record."""

    async def connect(self) -> None:
        """Get ready for the clock."""

    async def carry_out(self, start_ns: int) -> "Measured":
        """Send on a clock that starts at `start_ns` (CLOCK_MONOTONIC), and wait until all has ended.

        Raises:
            WorkerDied: It has gone.
        """

    def progress(self) -> Progress:
        """How far it is."""

    def stop(self, reason: str) -> None:
        """Send nothing more, let what is in flight end."""

    def abort(self, reason: str) -> None:
        """Send nothing more, end what is in flight."""


STEPS = ("check_ready", "warm_up", "connect", "carry_out")


class Proxy:
    """A part that is carried out elsewhere: each step is a call there."""

    async def check_ready(self) -> None:
        """See `Part`."""
        await self.step("check_ready")

    async def warm_up(self) -> None:
        """See `Part`."""
        await self.step("warm_up")

    async def connect(self) -> None:
        """See `Part`."""
        await self.step("connect")

    async def carry_out(self, start_ns: int) -> "Measured":
        """See `Part`."""
        measured: Measured = await self.step("carry_out", start_ns)
        return measured

    async def step(self, name: str, *arguments: Any) -> Any:
        """Have a step taken; returns what came of it.

        Raises:
            WorkerDied: Whoever is to take it has gone.
        """
        raise NotImplementedError


class Group(Generic[P]):
    """Parts that take each step together: none takes the next one before all have taken the last.

    One that dies while the clock runs is made up for by what it has left in its records; the others send nothing more.

    Attributes:
        job: What all of them have to do; known once it has been shared.
        workers: How many loops on each machine share it.
    """

    job: "Job"

    def __init__(self, parts: Sequence[P], workers: int) -> None:
        self._parts, self.workers = parts, workers
        self._heard: Heard | None = None
        self._records: Path | None = None

    def shared(self, job: "Job") -> "list[tuple[P, Job]]":
        """Each part, with what it has to do of a job; what is done once is none of it."""
        from loadgen.metrics.records.shards import piece
        from loadgen.metrics.server.latest import Heard

        self.job, self._records, count = job, job.records, len(self._parts)
        self._heard = None if job.scraping is None else Heard(job.folder)
        return [
            (
                part,
                replace(
                    job,
                    stripe=job.stripe.split(number, count),
                    records=job.records and piece(job.records, number),
                    scraping=None,
                ),
            )
            for number, part in enumerate(self._parts)
        ]

    async def check_ready(self) -> None:
        """See `Part`."""
        await gather_or_cancel(part.check_ready() for part in self._parts)

    async def warm_up(self) -> None:
        """See `Part`."""
        await gather_or_cancel(part.warm_up() for part in self._parts)

    async def connect(self) -> None:
        """See `Part`."""
        await gather_or_cancel(part.connect() for part in self._parts)

    async def carry_out(self, start_ns: int) -> "Measured":
        """See `Part`; the records of all are one file then."""
        from loadgen.metrics.records.shards import join
        from loadgen.runner.measurement import Measured

        found = await gather_or_cancel(self._carried_out(part, start_ns) for part in self._parts)
        whole = reduce(Measured.merge, found)
        paths = [part.job.records for part in self._parts if part.job.records]
        return whole.with_records_error(await asyncio.to_thread(join, paths)) if paths else whole

    def progress(self) -> Progress:
        """See `Part`."""
        whole = Progress.together([part.progress() for part in self._parts])
        return whole if self._heard is None else replace(whole, server=self._heard.latest())

    def stop(self, reason: str) -> None:
        """See `Part`."""
        for part in self._parts:
            part.stop(reason)

    def abort(self, reason: str) -> None:
        """See `Part`."""
        for part in self._parts:
            part.abort(reason)

    def clear(self) -> None:
        """Once all have gone: leave no file beside the records in which nothing stands."""
        from loadgen.metrics.records.shards import clear

        if self._records is not None:
            clear(self._records)

    def snapshot(self) -> None:
        """None: it is elsewhere, and to send one takes longer than those who stamp tokens can wait."""

    async def _carried_out(self, part: Part, start_ns: int) -> "Measured":
        """What a part brings back, or has left; where a worker of it has died, nobody sends any more."""
        from loadgen.runner import recovery

        try:
            measured = await part.carry_out(start_ns)
        except WorkerDied as died:
            self.stop(str(died))
            return await asyncio.to_thread(recovery.by_one, part.job, part.workers, start_ns, died)
        if any(shard.lost for shard in measured.shards):
            assert measured.snapshot.partial is not None
            self.stop(measured.snapshot.partial)
        return measured
