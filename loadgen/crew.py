"""Crew: the processes that measure, or the caller's own event loop in their place.

Light to import, so that a command can start its workers first and import what it needs itself while they do the same.
"""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, Self

from loadgen import messages
from loadgen.beside import beside
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from loadgen.measurement import Job, Measured, Measurement, Progress

PROGRESS_S = 0.25


class Crew(Protocol):
    """Who carries out the job of a run."""

    size: int

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: "Callable[[Progress], None]"
    ) -> "list[Measured]":
        """Carry out the job once its requests are prepared; one result for each member that brought one back."""

    def stop(self, reason: str) -> None:
        """Send nothing more, let what is in flight end."""

    def abort(self, reason: str) -> None:
        """Send nothing more, end what is in flight."""


class OwnLoop:
    """Measures in the running event loop: for the library."""

    size = 1

    def __init__(self) -> None:
        self._measurement: "Measurement | None" = None

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: "Callable[[Progress], None]"
    ) -> "list[Measured]":
        """Measure here."""
        from loadgen.measurement import Measurement

        self._measurement = measurement = Measurement(job, prepared)
        async with beside(_watch(measurement, on_progress)):
            return [await measurement.run()]

    def stop(self, reason: str) -> None:
        """Send nothing more."""
        if self._measurement:
            self._measurement.stop(reason)

    def abort(self, reason: str) -> None:
        """End it."""
        if self._measurement:
            self._measurement.abort(reason)


class Workers:
    """Measures in processes of its own, so that drawing and reporting cost the measuring loop nothing.

    As a context manager it starts them, early, so that they import while others get ready, and leaves none behind.
    """

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self._processes: list[Process] = []

    async def __aenter__(self) -> Self:
        for _ in range(self.size):
            # A session of its own: Ctrl-C is for the process that reports, which then tells the workers.
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "loadgen.worker", stdin=PIPE, stdout=PIPE, limit=1 << 30, start_new_session=True
            )
            self._processes.append(process)
        return self

    async def __aexit__(self, *error: object) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.kill()
            await process.wait()
            transport = process._transport  # type: ignore[attr-defined]  # else its pipes close after the loop has
            transport.close()

    async def measure(
        self, job: "Job", prepared: Awaitable[None], on_progress: "Callable[[Progress], None]"
    ) -> "list[Measured]":
        """Hand the job out and collect what comes back; a worker that dies brings nothing."""
        for process in self._processes:
            self._say(process, messages.encode(job))
        await prepared
        for process in self._processes:
            self._say(process, b"go\n")
        found = await asyncio.gather(*(_collect(process, on_progress) for process in self._processes))
        return [measured for measured in found if measured is not None]

    def stop(self, reason: str) -> None:
        """Tell the workers to send nothing more."""
        self._command("stop", reason)

    def abort(self, reason: str) -> None:
        """Tell the workers to end."""
        self._command("abort", reason)

    def _command(self, word: str, reason: str) -> None:
        for process in self._processes:
            self._say(process, f"{word} {reason}\n".encode())

    @staticmethod
    def _say(process: Process, line: bytes) -> None:
        if process.returncode is None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(line)


async def _collect(process: Process, on_progress: "Callable[[Progress], None]") -> "Measured | None":
    from loadgen.measurement import Measured

    assert process.stdout is not None
    while line := await process.stdout.readline():
        message = messages.decode(line)
        if isinstance(message, LoadgenError):
            raise message
        if isinstance(message, Measured):
            return message
        on_progress(message)
    return None


async def _watch(measurement: "Measurement", on_progress: "Callable[[Progress], None]") -> None:
    while True:
        await asyncio.sleep(PROGRESS_S)
        on_progress(measurement.progress())
