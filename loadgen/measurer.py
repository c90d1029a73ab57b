"""Measurer: who carries out the part of a run that is on the clock: the running event loop, or a worker process.

Light to import, so that a command can start its worker first and import what it needs itself meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from loadgen.beside import beside
from loadgen.child import Child
from loadgen.errors import WorkerDied

if TYPE_CHECKING:
    from loadgen.measurement import Job, Measured, Measurement, Progress

PROGRESS_S = 0.25


class Measurer(Protocol):
    """Carries out one job."""

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: "Callable[[Progress], None]"
    ) -> "Measured":
        """Carry it out once its requests are prepared, and tell a few times a second how far it is."""

    def stop(self, reason: str) -> None:
        """Send nothing more, let what is in flight end."""

    def abort(self, reason: str) -> None:
        """Send nothing more, end what is in flight."""


class OwnLoop:
    """Measures in the running event loop: for the library, and inside a worker.

    Args:
        linger_ns: For how long the loop's other work may be kept waiting, as for a `Poll`.
    """

    def __init__(self, linger_ns: int = 0) -> None:
        self._linger_ns = linger_ns
        self._measurement: Measurement | None = None

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: "Callable[[Progress], None]"
    ) -> "Measured":
        """Measure here."""
        from loadgen.measurement import Measurement

        self._measurement = measurement = Measurement(job, prepared, self._linger_ns)
        async with beside(_watch(measurement, on_progress)):
            return await measurement.run()

    def stop(self, reason: str) -> None:
        """Send nothing more."""
        if self._measurement:
            self._measurement.stop(reason)

    def abort(self, reason: str) -> None:
        """End it."""
        if self._measurement:
            self._measurement.abort(reason)


class Worker(Child):
    """Measures in a process of its own, so that drawing and reporting cost the measuring loop nothing."""

    def __init__(self) -> None:
        super().__init__("loadgen.worker")

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: "Callable[[Progress], None]"
    ) -> "Measured":
        """Hand the job over and take what comes back.

        Raises:
            WorkerDied: The process died.
        """
        from loadgen.measurement import Progress

        self.send(job)
        await prepared
        self.say(b"go\n")
        async for message in self.messages():
            if not isinstance(message, Progress):
                measured: Measured = message
                return measured
            on_progress(message)
        raise WorkerDied(f"the measuring process {await self.end()}")

    def stop(self, reason: str) -> None:
        """Tell the worker to send nothing more."""
        self.say(f"stop {reason}\n".encode())

    def abort(self, reason: str) -> None:
        """Tell the worker to end."""
        self.say(f"abort {reason}\n".encode())


async def _watch(measurement: "Measurement", on_progress: "Callable[[Progress], None]") -> None:
    while True:
        await asyncio.sleep(PROGRESS_S)
        on_progress(measurement.progress())
