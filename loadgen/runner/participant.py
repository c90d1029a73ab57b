"""Participants of a run: a loop in this process, a proxy of one elsewhere, or a group of them. All take the same steps.

Light to import, so that a command can start its workers first and import the rest meanwhile.
"""

import asyncio
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from loadgen.errors import WorkerDied
from loadgen.metrics.progress import PHASES, Progress

if TYPE_CHECKING:
    from loadgen.metrics.run_data import Measurement
    from loadgen.metrics.snapshot import Snapshot
    from loadgen.runner.job import Job

PROGRESS_S = 0.25
Step = Literal["check_ready", "warm_up", "connect"]
STEPS = ("check_ready", "warm_up", "connect", "carry_out")  # in their order, after `begin`


class Participant(Protocol):
    """Carries out a job, step by step; each step is awaited before the next one.

    Attributes:
        workers: How many loops on each machine share the job.
    """

    workers: int = 1

    @property
    def pid(self) -> int | None:
        """Its process on this machine, if it has one of its own."""
        return None

    async def begin(self, job: "Job") -> None:
        """Take the job and prepare to connect, while its requests may still be prepared.

        Raises:
            BadInput: The job needs more connections than it can have.
        """

    async def take(self, step: Step) -> None:
        """Take a step before the clock starts.

        `check_ready` opens the requests, which are prepared now, and checks that the servers answer; `warm_up` sends
        the warm-up requests; `connect` opens connections ahead of the clock.

        Raises:
            BadInput: The job needs more connections than it can have, or a file cannot be written.
            Unreachable: The test request, where one was asked for, did not succeed in time.
        """

    async def carry_out(self, start_ns: int) -> "Measurement":
        """Send on a clock that starts at `start_ns` (CLOCK_MONOTONIC), and wait until all requests have ended.

        Where its process or machine dies meanwhile, the measurement is recovered from its records.
        """

    def progress(self) -> Progress:
        """Return how far it is."""

    def snapshot(self) -> "Snapshot | None":
        """Return what was measured so far; None before the clock starts, and where the loop is in another process."""
        # To send a snapshot takes longer than a loop that stamps tokens can wait.
        return None

    def stop(self, reason: str) -> None:
        """Send nothing more, and let requests in flight end."""

    def abort(self, reason: str) -> None:
        """Send nothing more, and end requests in flight."""

    def release(self) -> None:
        """Free the memory of its processes on this machine; it takes no further step."""
        return


class Proxy(Participant):
    """A participant elsewhere, in a process or on another machine, whose steps are calls over a channel."""

    job: "Job"

    def __init__(self, workers: int = 1) -> None:
        self.workers, self._progress = workers, Progress(PHASES[0])

    @abstractmethod
    async def call(self, step: str, *arguments: Any) -> Any:
        """Have a step taken, and return its result.

        Raises:
            LoadgenError: The error of the step.
            WorkerDied: The process or machine is gone.
        """

    @abstractmethod
    def send(self, command: str, reason: str) -> None:
        """Send a command, `stop` or `abort`, without waiting."""

    async def begin(self, job: "Job") -> None:
        """Hand the job over, as `Participant.begin`; the server metrics of a whole run are read on this side."""
        self.job = job
        await self.call("begin", replace(job, scraping=None))

    async def take(self, step: Step) -> None:
        """As `Participant.take`."""
        await self.call(step)

    async def carry_out(self, start_ns: int) -> "Measurement":
        """As `Participant.carry_out`."""
        try:
            measurement: Measurement = await self.call("carry_out", start_ns)
        except WorkerDied as died:
            return await self.recover(start_ns, died)
        return measurement

    async def recover(self, start_ns: int, died: WorkerDied) -> "Measurement":
        """Return what is left of the measurement after the process or machine has died."""
        from loadgen.runner import crash_recovery

        return await asyncio.to_thread(crash_recovery.recover_worker, self.job, self.workers, start_ns, died)

    def progress(self) -> Progress:
        """Return the last progress that came over the channel."""
        return self._progress

    def stop(self, reason: str) -> None:
        """As `Participant.stop`."""
        self.send("stop", reason)

    def abort(self, reason: str) -> None:
        """As `Participant.abort`."""
        self.send("abort", reason)
