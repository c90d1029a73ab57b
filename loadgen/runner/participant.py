"""Participants of a run: a loop in this process, a proxy of one elsewhere, or a group of them,
with the same steps.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from loadgen.errors import WorkerDied
from loadgen.metrics.progress import PHASES, Progress
from loadgen.metrics.records.shards import remove_empty_shards
from loadgen.metrics.run_data import Measurement
from loadgen.metrics.snapshot import Snapshot
from loadgen.runner.job import Job
from loadgen.util.tasks import gather_or_cancel
from loadgen.workload.target import Target

Step = Literal["check_ready", "warm_up", "connect"]
Command = Literal["stop", "abort", "use"]
STEPS = ("check_ready", "warm_up", "connect", "carry_out")  # in their order, after `begin`


class Participant(Protocol):
    """Carries out a job, step by step; each step is awaited before the next one.

    Attributes:
        workers: Number of loops on each machine that share the job.
    """

    workers: int = 1

    @property
    def pid(self) -> int | None:
        """Its process on this machine, if it has one of its own."""
        return None

    async def begin(self, job: Job) -> None:
        """Take the job and prepare to connect, while its requests may still be prepared.

        Args:
            job: The job; its folder holds the schedule already.

        Raises:
            BadInput: The job needs more connections than it can have.
        """

    async def take(self, step: Step) -> None:
        """Take a step before the clock starts.

        `check_ready` opens the requests, which are prepared now, and checks that the servers
        answer; `warm_up` sends the warm-up requests; `connect` opens connections ahead of the
        clock.

        Args:
            step: The step; the steps are taken in their order.

        Raises:
            BadInput: The job needs more connections than it can have, or a file cannot be written.
            Unreachable: The test request, where one was asked for, did not succeed in time.
        """

    async def carry_out(self, start_ns: int) -> Measurement:
        """Send the requests of the job on the clock, and wait until all have ended.

        If its process or machine dies meanwhile, the measurement is recovered from its records.

        Args:
            start_ns: When the clock starts, ns of CLOCK_MONOTONIC.

        Returns:
            What was measured.
        """

    def progress(self) -> Progress:
        """Return how far it is."""

    def snapshot(self) -> Snapshot | None:
        """Return what was measured so far; None before the clock starts, and where the loop is in
        another process.

        To send a snapshot takes longer than a loop that stamps tokens can wait.
        """
        return None

    def stop(self, reason: str) -> None:
        """Send nothing more, and let requests in flight end.

        Args:
            reason: Why, for the report.
        """

    def abort(self, reason: str) -> None:
        """Send nothing more, and end requests in flight.

        Args:
            reason: Why, for the report.
        """

    def use(self, targets: tuple[Target, ...]) -> None:
        """Send the next requests with the credentials of these targets, which else are the job's.

        Args:
            targets: As of the job.
        """

    def release(self) -> None:
        """Free the memory of its processes on this machine; it takes no further step."""
        return


class Proxy(Participant):
    """A participant elsewhere, in a process or on another machine, whose steps are calls over a
    channel.

    Args:
        workers: Number of loops that share its job there.

    Attributes:
        job: The job, from `begin` on.
    """

    job: Job

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self._progress = Progress(PHASES[0])

    @abstractmethod
    async def call(self, step: str, *arguments: Any) -> Any:
        """Have a step taken.

        Args:
            step: The name of a method of the participant: `begin`, or one of STEPS.
            arguments: Its arguments.

        Returns:
            The result of the step.

        Raises:
            LoadgenError: The error of the step.
            WorkerDied: The process or machine is gone.
        """

    @abstractmethod
    def send(self, command: Command, argument: Any) -> None:
        """Send a command with its argument, without waiting."""

    async def begin(self, job: Job) -> None:
        """Hand the job over, as `Participant.begin`; the server metrics of a whole run are read
        on this side.
        """
        self.job = job
        await self.call("begin", replace(job, scraping=None))

    async def take(self, step: Step) -> None:
        """As `Participant.take`."""
        await self.call(step)

    async def carry_out(self, start_ns: int) -> Measurement:
        """As `Participant.carry_out`."""
        try:
            measurement: Measurement = await self.call("carry_out", start_ns)
        except WorkerDied as died:
            return await self.recover(start_ns, died)
        return measurement

    async def recover(self, start_ns: int, died: WorkerDied) -> Measurement:
        """Return what is left of the measurement after the process or machine has died."""
        from loadgen.runner import run_result  # slow to import, and rarely needed

        return await asyncio.to_thread(
            run_result.recover_worker, self.job, self.workers, start_ns, died
        )

    def progress(self) -> Progress:
        """Return the last progress that came over the channel."""
        return self._progress

    def stop(self, reason: str) -> None:
        """As `Participant.stop`."""
        self.send("stop", reason)

    def abort(self, reason: str) -> None:
        """As `Participant.abort`."""
        self.send("abort", reason)

    def use(self, targets: tuple[Target, ...]) -> None:
        """As `Participant.use`."""
        self.send("use", targets)


class Group(Participant):
    """Participants that take each step together: none takes a step before all have taken the
    previous one.

    If one dies while the clock runs, the others send nothing more.

    Args:
        participants: Those that share the job: the workers of one machine, or the machines of a
            cluster.
        workers: Number of loops on each machine that share it.

    Attributes:
        job: The whole job, from `begin` on.
    """

    job: Job

    def __init__(self, participants: Sequence[Participant], workers: int) -> None:
        self.workers = workers
        self._participants = participants
        self._jobs: list[Job] = []

    async def begin(self, job: Job) -> None:
        """Share the job among the participants."""
        self.job = job
        self._jobs = self.shares(job)
        pairs = zip(self._participants, self._jobs, strict=True)
        await gather_or_cancel(participant.begin(share) for participant, share in pairs)

    def shares(self, job: Job) -> list[Job]:
        """Split a job into one for each participant; the coordinator alone scrapes server
        metrics.
        """
        pids = [participant.pid for participant in self._participants]
        return [
            replace(
                job,
                partition=job.partition.split(index, len(pids)),
                scraping=None,
                sibling_pids=tuple(sibling for sibling in pids if sibling not in (None, pid)),
            )
            for index, pid in enumerate(pids)
        ]

    async def take(self, step: Step) -> None:
        """Have all take the step."""
        await gather_or_cancel(participant.take(step) for participant in self._participants)

    async def carry_out(self, start_ns: int) -> Measurement:
        """Have all send on one clock, and merge what they measured."""
        parts = await gather_or_cancel(
            self._carry_out_one(participant, start_ns) for participant in self._participants
        )
        return reduce(Measurement.merge, parts)

    def progress(self) -> Progress:
        """Return how far all are."""
        return Progress.together([participant.progress() for participant in self._participants])

    def stop(self, reason: str) -> None:
        """Stop all."""
        for participant in self._participants:
            participant.stop(reason)

    def abort(self, reason: str) -> None:
        """Abort all."""
        for participant in self._participants:
            participant.abort(reason)

    def use(self, targets: tuple[Target, ...]) -> None:
        """Have all use them."""
        for participant in self._participants:
            participant.use(targets)

    def release(self) -> None:
        """Release all."""
        for participant in self._participants:
            participant.release()

    def clear(self) -> None:
        """Remove shards of the records that are empty; call once all participants have ended."""
        if self._jobs and self.job.records is not None:
            remove_empty_shards(self.job.records)

    async def _carry_out_one(self, participant: Participant, start_ns: int) -> Measurement:
        """Have one participant carry out its job; if a worker of it was lost, stop the others."""
        measurement = await participant.carry_out(start_ns)
        if any(worker.lost for worker in measurement.trailer.workers):
            assert measurement.snapshot.partial is not None
            self.stop(measurement.snapshot.partial)
        return measurement
