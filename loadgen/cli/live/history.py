"""History: what the live view keeps of a run that goes on."""

from collections import deque
from dataclasses import replace

from loadgen.cli.live.backlog import LiveBacklog
from loadgen.cli.live.over_time import OverTime
from loadgen.cli.live.pace import Pace
from loadgen.config.settings import RunSettings
from loadgen.metrics.progress import Progress

RECENT_S = 5.0  # the window of the current pace
START = Progress("running")


class History:
    """The progress of one run so far: in its last seconds, and over time.

    Args:
        settings: The settings of the run.

    Attributes:
        backlog: Whether requests pile up.
        over_time: In-flight requests and TTFT over time.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._recent, self._sending = deque([START]), START
        self.backlog, self.over_time = LiveBacklog(settings), OverTime()

    def add(self, progress: Progress) -> None:
        """Add the latest progress; it is ignored before the clock starts."""
        if not progress.begun:
            return
        self._recent.append(progress)
        while self._recent[1].elapsed_s <= progress.elapsed_s - RECENT_S:
            self._recent.popleft()
        if progress.phase == "running":
            self._sending = progress
        self.backlog.add(progress)
        self.over_time.add(progress)

    def now(self) -> Pace | None:
        """Return the pace of the last `RECENT_S` seconds, or of the time so far if it is shorter; None at the start."""
        return Pace.between(self._recent[0], self._recent[-1])

    def so_far(self) -> Pace | None:
        """Return the pace since the clock started; rates of due and sent end with the last request to be sent."""
        whole, sending = (Pace.between(START, last) for last in (self._recent[-1], self._sending))
        return whole if whole is None or sending is None else replace(whole, due=sending.due, sent=sending.sent)
