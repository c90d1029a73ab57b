"""One run: in the caller's event loop, in a loop of its own, or in a task that the caller
follows and may end.
"""

import asyncio
import contextlib
import functools
import logging
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, ParamSpec, Self, TypeVar

from loadgen import report
from loadgen.config.option import check_type
from loadgen.config.settings import NO_LOAD, RunSettings
from loadgen.errors import BadInput, GivenUp, LoadgenError
from loadgen.library.accepted import accepted, check_callback, check_dataset
from loadgen.metrics.progress import Progress
from loadgen.metrics.snapshot import Snapshot
from loadgen.runner import run as runner
from loadgen.runner.coordinator import open_participant
from loadgen.runner.participant import Participant
from loadgen.runner.run_result import Result
from loadgen.workload.prompt import Dataset

P = ParamSpec("P")
T = TypeVar("T")

LEFT = "its block was left"
UNMEASURED = "the run was given up before anything was measured: there is no result"


logger = logging.getLogger("loadgen")

OnProgress = Callable[[Progress], None]


def ignore(_: object) -> None:
    """Do nothing, as the default of callbacks."""


class UnsavedResult(LoadgenError):
    """A run has ended, and a file that its settings ask for could not be written, or is not
    complete.

    Attributes:
        result: The result of the run.
    """

    def __init__(self, text: str, result: Result) -> None:
        super().__init__(text)
        self.result = result


def synchronous(
    function: Callable[P, Coroutine[Any, Any, T]], remedy: str = "await loadgen.{}(...)"
) -> Callable[P, T]:
    """Return the synchronous form of a function, which runs it in an event loop of its own, on
    uvloop.

    Its name is that of the function with `_sync`. It raises BadInput where an event loop runs
    already, and else what the function raises.

    Args:
        remedy: What to call where a loop runs; {} stands for the function's name.
    """
    name = f"{function.__name__}_sync"

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with contextlib.suppress(RuntimeError):  # there is none
            asyncio.get_running_loop()
            raise BadInput(
                name, "an event loop runs here already", remedy.format(function.__name__)
            )
        import uvloop

        return uvloop.run(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Call `{function.__name__}` where no event loop runs; it makes one, on uvloop."
    return call


async def run(
    settings: RunSettings,
    *,
    dataset: Dataset | None = None,
    on_progress: OnProgress = ignore,
) -> Result:
    """Carry out one run in the running event loop, and write the files that the settings ask for.

    Cancelling it ends every request and leaves no result; `watch` keeps what was measured. If
    `settings.records` names a file, `from_records` makes a partial result of it.

    Args:
        settings: What to do; they name a server, or `engine="sim"`, loadgen's own simulator.
        dataset: Prompts of your own, instead of the ones the settings name.
        on_progress: Called a few times a second.

    Raises:
        BadInput: A setting cannot be used; nothing was sent.
        Unreachable: No server where the settings say, or at one of several places.
        EngineError: An engine did not start, or was not stopped completely.
        UnsavedResult: The run has ended, and a file of it could not be written.
    """
    check_dataset(dataset)
    check_callback("on_progress", on_progress)
    return await carry_out(accepted(settings), dataset, on_progress)


run_sync = synchronous(run, "await loadgen.run(...), or loadgen_run_async in a test")


async def carry_out(
    settings: RunSettings,
    dataset: Dataset | None,
    on_progress: OnProgress,
    participant: Participant | None = None,
) -> Result:
    """Carry out a run with accepted settings; `participant` carries it out, where it is open
    already.

    Raises:
        UnsavedResult: A file of the run could not be written.
        LoadgenError: As `run`.
    """
    given, settings = settings, settings.gentle()
    if settings != given:
        logger.warning(NO_LOAD)
    result = await runner.run(
        settings, dataset=dataset, on_progress=on_progress, participant=participant
    )
    saved = await asyncio.to_thread(report.save, settings, result, result.snapshot)
    if saved.errors:
        raise UnsavedResult("; ".join(saved.errors), result)
    return result


class Watched:
    """A run that goes on, made by `watch`: an asynchronous iterator of its progress, which ends
    with the run.

    Args:
        settings: The accepted settings of the run.
        dataset: Its prompts, instead of the ones the settings name.
        participant: Carries out the run.
        every_s: Seconds from one progress to the next.
    """

    def __init__(
        self,
        settings: RunSettings,
        dataset: Dataset | None,
        participant: Participant,
        every_s: float,
    ) -> None:
        self._participant, self._every_s = participant, every_s
        self._progress = self._returned = Progress("starting")
        self._was_raised = False
        self._failure: BaseException | None = None
        self._task = asyncio.create_task(self._run(settings, dataset))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Progress:
        """Return the progress, every `every_s` seconds and after the end; raises what ended the
        run, if anything.
        """
        await asyncio.wait({self._task}, timeout=self._every_s)
        if self._task.done():
            self._outcome()
            if self._returned is self._progress:
                raise StopAsyncIteration
        self._returned = self._progress
        return self._returned

    def snapshot(self) -> Snapshot | None:
        """Return what was measured so far; None before the clock starts, and where other processes
        measure.

        It takes the loop some milliseconds, in which no token is stamped.
        """
        return self._participant.snapshot()

    def stop(self, reason: str) -> None:
        """Send nothing more and let requests in flight end: the result is partial, because of
        `reason`.

        Raises:
            LoadgenError: Nothing is measured yet: leave the block, which gives the run up.
        """
        if not self._progress.measuring:
            raise LoadgenError(
                f"the run is {self._progress.phase} and measures nothing yet: leave the block "
                "instead"
            )
        self._participant.stop(reason)

    def abort(self, reason: str) -> None:
        """End the run at once, with the requests in flight: the result is partial, because of
        `reason`.

        Before anything is measured there is none, and `result` raises GivenUp.
        """
        if self._progress.measuring:
            self._participant.abort(reason)
        else:
            self._task.cancel()

    async def result(self) -> Result:
        """Wait until it has ended, and return its result; raises what `run` does.

        To cancel the wait, as `asyncio.timeout` does, leaves the run alone. Once the block was
        left, the result is partial if the run had not ended.

        Raises:
            GivenUp: It was aborted, or its block left, before anything was measured.
        """
        await asyncio.wait({self._task})
        return self._outcome()

    async def give_up(self) -> None:
        """End it at once, if it has not ended; what was measured becomes a partial result."""
        if not self._task.done():
            self.abort(LEFT)
        try:
            await asyncio.wait({self._task})
        except asyncio.CancelledError:  # cancelled again: do not wait
            self._task.cancel()
            await asyncio.wait({self._task})
            raise
        self._failure = None if self._task.cancelled() else self._task.exception()

    def raise_failure(self) -> None:
        """Raise the error of a run that failed as it was given up, unless it was raised before."""
        if self._failure is not None and not self._was_raised:
            raise self._failure

    def _outcome(self) -> Result:
        """Return the result, or raise the error, of a run that has ended."""
        self._was_raised = True
        try:
            return self._task.result()
        except asyncio.CancelledError:
            raise GivenUp(UNMEASURED) from None

    async def _run(self, settings: RunSettings, dataset: Dataset | None) -> Result:
        return await carry_out(settings, dataset, self._update, self._participant)

    def _update(self, progress: Progress) -> None:
        self._progress = progress


@contextlib.asynccontextmanager
async def watch(
    settings: RunSettings, *, every_s: float = 1.0, dataset: Dataset | None = None
) -> AsyncIterator[Watched]:
    """Start a run that goes on while the block does; leaving the block early ends it at once.

    Then, also where the block was cancelled or has raised, `result` returns what was measured, as a
    partial result.

    Args:
        settings: What to do; they name a server, or `engine="sim"`, loadgen's own simulator.
        every_s: Seconds from one progress to the next.
        dataset: Prompts of your own, instead of the ones the settings name.

    Raises:
        BadInput: A setting that cannot be used; nothing was sent.
    """
    check_dataset(dataset)
    check_type("every_s", every_s, int | float, "give seconds")
    if not 0 < every_s < math.inf:
        raise BadInput("every_s", f"{every_s} is out of range", "give seconds above 0")
    checked = accepted(settings)
    opened = open_participant(checked, own_loop=True)
    async with opened as participant:
        watched = Watched(checked, dataset, participant, every_s)
        try:
            yield watched
        finally:
            await watched.give_up()
        watched.raise_failure()
