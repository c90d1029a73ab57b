"""One run in the caller's event loop, or in one of its own."""

import asyncio
from collections.abc import Callable

from loadgen import report
from loadgen.config.run_fields import python_names
from loadgen.config.settings import RunSettings
from loadgen.errors import LoadgenError
from loadgen.library.accepted import accepted, check_callback, check_dataset
from loadgen.library.synchronous import synchronous
from loadgen.metrics.progress import Progress
from loadgen.runner import run as runner
from loadgen.runner.participant import Participant
from loadgen.runner.run_result import Result
from loadgen.workload.prompt import Dataset

OnProgress = Callable[[Progress], None]


def ignore(_: object) -> None:
    """Do nothing, as the default of callbacks."""


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
    on_progress: OnProgress = ignore,
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


run_sync = synchronous(run, "await loadgen.run(...), or loadgen_run_async in a test")
