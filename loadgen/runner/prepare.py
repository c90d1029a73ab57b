"""The preparer as the process sees it that starts it: has the requests of a run made while other processes connect.

Light to import, so that a command can start that process first and import the rest meanwhile.
"""

import time
from typing import TYPE_CHECKING

from loadgen.errors import LoadgenError
from loadgen.metrics.progress import OnProgress, Progress
from loadgen.util.child_process import ChildProcess

if TYPE_CHECKING:
    from loadgen.runner.prepare_main import PrepareOrder


MODULE = "loadgen.runner.prepare_main"


class Preparer(ChildProcess):
    """A process that prepares the requests of one run.

    Args:
        keep: Whether to keep the process after the run, for the next one in this process.
    """

    def __init__(self, *, keep: bool = False) -> None:
        super().__init__(MODULE, keep=keep)
        self._reached = 0

    async def prepare(self, order: "PrepareOrder", on_progress: OnProgress) -> None:
        """Have the requests written, and report progress.

        Raises:
            BadInput: The requests cannot be made.
            LoadgenError: The process died.
        """
        begun = time.monotonic()
        known = order.settings.num_prompts is not None or not order.settings.timed_by_data
        scheduled = order.count if known else 0
        self.send(order)
        on_progress(Progress("preparing", scheduled=scheduled))  # a tokenizer may take long before the first is made
        async for done in self.messages():
            if done is None:
                self.is_idle = not order.further
                if self.is_idle and not self._is_kept:
                    self.kill()  # its memory is free before the clock starts
                return
            on_progress(Progress("preparing", time.monotonic() - begun, scheduled=scheduled, ended=done))
        raise LoadgenError(f"the process that makes the prompts {await self.wait_ended()}")

    def keep_ahead(self, progress: Progress) -> None:
        """Tell the process how far the run is, where it prepares further requests meanwhile."""
        if progress.reached > self._reached:
            self._reached = progress.reached
            self.send(progress.reached)
