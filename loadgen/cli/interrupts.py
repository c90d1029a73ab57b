"""Interrupts: what Ctrl-C, SIGTERM and a terminal that has gone mean to a command that measures."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from loadgen.cli.live.log_lines import Silent, View
from loadgen.errors import GivenUp

if TYPE_CHECKING:
    from loadgen.runner.participant import Participant

T = TypeVar("T")


class Interrupts:
    """Ctrl-C once: send nothing more and wait; twice, SIGTERM, or a terminal that has gone: end now.

    While nothing is measured, each of them means to give up.

    Attributes:
        heard: How many there were.
    """

    def __init__(self) -> None:
        self.heard = 0
        self._measurer: Participant | None = None
        self._view: View = Silent()

    def concern(self, measurer: "Participant", view: View) -> None:
        """From now on they are for a run: who measures it, and what shows how far it is."""
        self._measurer, self._view = measurer, view

    def rest(self) -> None:
        """From now on nothing is measured, until they concern the next run."""
        self._measurer = None

    async def obeyed(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry out some work, which they may end.

        Raises:
            GivenUp: It was given up.
        """
        task = asyncio.ensure_future(work)

        def interrupt(patient: bool) -> None:
            self.heard += 1
            if self._measurer is None or not self._view.measuring:
                task.cancel()
            elif patient and self.heard == 1:
                self._view.note("interrupted: waiting for requests in flight; once more to end them now")
                self._measurer.stop("interrupted")
            else:
                self._measurer.abort("interrupted")

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, interrupt, True)
        loop.add_signal_handler(signal.SIGTERM, interrupt, False)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup has the run outlive the terminal
            loop.add_signal_handler(signal.SIGHUP, interrupt, False)
        try:
            return await task
        except asyncio.CancelledError:
            raise GivenUp from None
