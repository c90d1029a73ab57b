"""One run in the caller's event loop, or in one of its own."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from loadgen import report
from loadgen.config.python_names import python_names
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, LoadgenError
from loadgen.library.accepted import accepted, check_callback, check_dataset
from loadgen.metrics.progress import Progress
from loadgen.runner import run as runner
from loadgen.runner.participant import Participant
from loadgen.runner.run_result import Result
from loadgen.workload.prompt import Dataset

OnProgress = Callable[[Progress], None]
T = TypeVar("T")


class UnsavedResult(LoadgenError):
    """A run has ended, and a file that its settings ask for could not be written, or is not complete.

    Attributes:
        result: The result of the run.
    """

    def __init__(self, text: str, result: Result) -> None:
        super().__init__(text)
        self.result = result


async def run(
    settings: RunSettings | None = None,
    *,
    dataset: Dataset | None = None,
    on_progress: OnProgress = lambda progress: None,
) -> Result:
    """Carry out one run in the running event loop, and write the files that the settings ask for.

    Cancelling it ends every request and leaves no result; `watch` keeps what was measured. If `settings.records` names
    a file, `from_records` makes a partial result of it.

    Args:
        settings: What to do; by default, and with no server named, the built-in simulator is measured.
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
    with python_names():
        return await carry_out(accepted(settings), dataset, on_progress)


async def carry_out(
    asked: RunSettings, dataset: Dataset | None, on_progress: OnProgress, participant: Participant | None = None
) -> Result:
    """Carry out a run with accepted settings; `participant` carries it out, where it is open already."""
    result = await runner.run(asked, dataset=dataset, on_progress=on_progress, participant=participant)
    saved = await asyncio.to_thread(report.save, asked, result, result.snapshot)
    if saved.errors:
        raise UnsavedResult("; ".join(saved.errors), result)
    return result


def run_sync(
    settings: RunSettings | None = None,
    *,
    dataset: Dataset | None = None,
    on_progress: OnProgress = lambda progress: None,
) -> Result:
    """Call `run` where no event loop runs; it makes one, on uvloop.

    Raises:
        BadInput: An event loop runs already; or as `run`.
    """
    refuse_running_loop("run_sync", "await loadgen.run(...), or loadgen_run_async in a test")
    return in_new_loop(run(settings, dataset=dataset, on_progress=on_progress))


def refuse_running_loop(function: str, remedy: str) -> None:
    """Refuse the synchronous form of a function where an event loop runs.

    Raises:
        BadInput: It does.
    """
    with contextlib.suppress(RuntimeError):  # there is none
        asyncio.get_running_loop()
        raise BadInput(function, "an event loop runs here already", remedy)


def in_new_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of its own, on uvloop."""
    import uvloop

    return uvloop.run(work)
