"""The runner of one event loop: sends its partition of a run on the clock, and measures."""

import asyncio
import contextlib
from typing import Self

from loadgen.metrics.progress import Progress
from loadgen.metrics.run_data import Measurement
from loadgen.metrics.snapshot import Snapshot
from loadgen.runner.job import Job
from loadgen.runner.loop_stages import Opened, Prepared, Ready
from loadgen.runner.participant import Participant, Step
from loadgen.runner.running_loop import RunningLoop
from loadgen.workload.target import Target


class LoopRunner(Participant):
    """Carries out a job in the running loop. Used in `async with`, it closes all that it has
    opened.

    Attributes:
        opened: Its transports, from `begin` on.
    """

    def __init__(self) -> None:
        self._stack = contextlib.AsyncExitStack()
        self._phase = "connecting"
        self._stopped: str | None = None
        self._warming: asyncio.Timeout | None = None
        # Each stage has the one before it.
        self.opened: Opened | None = None
        self._prepared: Prepared | None = None
        self._ready: Ready | None = None
        self._running: RunningLoop | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def begin(self, job: Job) -> None:
        """As `Participant.begin`."""
        self.opened = Opened(job)
        await self.opened.open(self._stack)

    async def take(self, step: Step) -> None:
        """As `Participant.take`."""
        await getattr(self, step)()

    async def check_ready(self) -> None:
        """Open the requests, and have the first worker check that each target answers."""
        assert self.opened is not None
        self._prepared = Prepared(self.opened, self._stack, lambda: self._stopped is not None)
        self._phase = "warming up"
        await self._prepared.check_ready()

    async def warm_up(self) -> None:
        """Send this worker's share of the warm-up requests."""
        assert self._prepared is not None
        await self._prepared.warm_up()

    async def connect(self) -> None:
        """Open connections ahead of the clock; all else that takes its time is done now, too."""
        assert self._prepared is not None
        self._ready = Ready(self._prepared, self._stack, await self._warm(self._prepared))
        self._phase = "ready"

    async def carry_out(self, start_ns: int) -> Measurement:
        """As `Participant.carry_out`."""
        assert self._ready is not None
        self._running = running = RunningLoop(self._ready, start_ns)
        if self._stopped is not None:
            running.load.stop(self._stopped)
        trailer = await running.carry_out(self._stack)
        return Measurement(running.recorder.snapshot(self._stopped), trailer)

    def stop(self, reason: str) -> None:
        """As `Participant.stop`."""
        if self._stopped is None:
            self._stopped = reason
            if self._warming is not None:
                self._warming.reschedule(0)
            if self._running is not None:
                self._running.load.stop(reason)

    def abort(self, reason: str) -> None:
        """Send nothing more, and end requests in flight as cancelled."""
        self.stop(reason)
        if self.opened is not None:
            self.opened.abandon(reason)

    def use(self, targets: tuple[Target, ...]) -> None:
        """As `Participant.use`."""
        if self.opened is not None:
            self.opened.use(targets)
        if self._prepared is not None and self._prepared.capture is not None:
            self._prepared.capture.hide(targets)

    def progress(self) -> Progress:
        """As `Participant.progress`."""
        return Progress(self._phase) if self._running is None else self._running.progress()

    def snapshot(self) -> Snapshot | None:
        """As `Participant.snapshot`; takes the loop some milliseconds."""
        return None if self._running is None else self._running.recorder.snapshot()

    async def _warm(self, prepared: Prepared) -> int:
        """Open connections ahead of the clock, until enough are open or the run is stopped, and
        return how many are.
        """
        if self._stopped is not None:
            return 0
        count = prepared.budget.warm_count(prepared.requests.output_tokens)
        try:
            async with asyncio.timeout(None) as self._warming:
                return await prepared.opened.link.warm(count)
        except TimeoutError:
            return 0
        finally:
            self._warming = None
