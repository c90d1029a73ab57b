"""Signal handling: what Ctrl-C, SIGTERM and SIGHUP do to a command that measures."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from loadgen.cli.live.view import View
from loadgen.errors import INTERRUPTED, GivenUp

if TYPE_CHECKING:
    from loadgen.runner.participant import Participant

T = TypeVar("T")


class Interrupts:
    """Handles signals: the first Ctrl-C drains the run; a second one, SIGTERM or SIGHUP ends it at
    once.

    While no run is measured, each of them cancels the command.

    Attributes:
        count: Signals received so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._participant: Participant | None = None
        self._view = View()

    def attach(self, participant: "Participant", view: View) -> None:
        """Direct further signals to a run.

        Args:
            participant: Carries out the run, and can stop or abort it.
            view: Shows its progress, and knows whether it is being measured.
        """
        self._participant, self._view = participant, view

    def detach(self) -> None:
        """Direct further signals to the command itself, until the next run is attached."""
        self._participant = None

    async def run_interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work` with the signal handlers installed.

        Raises:
            GivenUp: A signal cancelled it.
        """
        task = asyncio.ensure_future(work)

        def interrupt(patient: bool) -> None:
            self.count += 1
            progress = self._view.progress
            if self._participant is None or not progress.measuring:
                if not task.cancelling():  # a second cancellation would end what stops the engine
                    task.cancel()
            elif patient and self.count == 1:
                if progress.in_flight:  # else the command ends at once
                    self._view.note(
                        "interrupted: waiting for requests in flight; Ctrl-C again ends them"
                    )
                self._participant.stop(INTERRUPTED)
            else:
                self._participant.abort(INTERRUPTED)

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, interrupt, True)
        loop.add_signal_handler(signal.SIGTERM, interrupt, False)
        if (
            signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
        ):  # under nohup the run outlives the terminal
            loop.add_signal_handler(signal.SIGHUP, interrupt, False)
        try:
            return await task
        except asyncio.CancelledError:
            raise GivenUp from None
