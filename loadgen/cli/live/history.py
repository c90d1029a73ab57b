"""History: what the live view keeps of a run that goes on.

These are the pace of its last seconds, its backlog by the rule of the check of a whole run, and
in-flight requests and the median TTFT over time, in columns of equal length.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from msgspec.structs import replace

from loadgen.checks.sufficiency import FIRST, MIN_BEGUN, MIN_SOJOURNS, Backlog
from loadgen.cli.live.progress_line import Pace
from loadgen.config.settings import RunSettings
from loadgen.core.sketch import Sketch
from loadgen.metrics.progress import Progress

MAX_COLUMNS = 96
COLUMN_S = 0.25  # the first columns; twice as long each time there are more than MAX_COLUMNS
LEVELS, ASCII_LEVELS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"

# The rule is asked four times a second, and a rise that chance made does not hold: it must, for a
# share of the window.
HELD_SHARE, MIN_HELD_S, MAX_HELD_S = 0.4, 5.0, 30.0

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
        """Return the pace of the last `RECENT_S` seconds, or of the time so far if it is
        shorter; None at the start.
        """
        return Pace.between(self._recent[0], self._recent[-1])

    def so_far(self) -> Pace | None:
        """Return the pace since the clock started; rates of due and sent end with the last
        request to be sent.
        """
        whole, sending = (Pace.between(START, last) for last in (self._recent[-1], self._sending))
        return (
            whole
            if whole is None or sending is None
            else replace(whole, due=sending.due, sent=sending.sent)
        )


class LiveBacklog:
    """Requests that are due and have not ended, along a straight line through all moments so far.

    As in the check, the window begins when the first requests have had time to end, and ends with
    the last due one. A run whose rate rises, a closed loop, and sessions are not judged.

    Args:
        settings: The settings of the run.

    Attributes:
        overloaded: Whether requests come faster than they are answered, as far as the run shows.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._changing, self._burstiness = settings.rate_changes, settings.burstiness
        self._first_due_s: float | None = None  # when the first requests were due
        self._sojourn_s = self._begin_s = 0.0
        # The sums of least squares over the moments of the window: their number, time, and
        # requests.
        self._n = self._t = self._tt = self._y = self._ty = self._yy = 0.0
        self._rising_since_s: float | None = None
        self.overloaded = False

    def add(self, progress: Progress) -> None:
        """Add the latest progress; only what comes while requests are sent counts."""
        steady = not (self._changing or progress.closed_loop) and bool(progress.sending_s)
        if progress.phase != "running" or not steady or not self._window_has_begun(progress):
            return
        at_s, number = (
            progress.elapsed_s - self._begin_s,
            float(progress.in_flight + progress.waiting),
        )
        self._n, self._t, self._tt = self._n + 1, self._t + at_s, self._tt + at_s**2
        self._y, self._ty, self._yy = (
            self._y + number,
            self._ty + at_s * number,
            self._yy + number**2,
        )
        rising = (
            progress.due >= MIN_BEGUN
            and at_s >= MIN_SOJOURNS * self._sojourn_s
            and self._line(at_s).rising
        )
        if not rising:
            self._rising_since_s = None
        elif self._rising_since_s is None:
            self._rising_since_s = at_s
        held_s = min(max(HELD_SHARE * at_s, MIN_HELD_S), MAX_HELD_S)
        self.overloaded = self._rising_since_s is not None and at_s - self._rising_since_s >= held_s

    def _window_has_begun(self, progress: Progress) -> bool:
        """Begin the window once the first requests have all ended and one of them has shown how
        long it took.
        """
        if self._sojourn_s:
            return True
        if self._first_due_s is None and progress.due >= FIRST:
            self._first_due_s = progress.elapsed_s
        first_s, e2el = self._first_due_s, progress.e2el
        if (
            first_s is not None
            and e2el.mean_ms
            and progress.elapsed_s - progress.oldest_s > first_s
        ):
            self._sojourn_s, self._begin_s = e2el.mean_ms / 1e3, progress.elapsed_s
        return False

    def _line(self, window_s: float) -> Backlog:
        mean_t, mean = self._t / self._n, self._y / self._n
        spread = self._tt / self._n - mean_t**2
        slope = (self._ty / self._n - mean_t * mean) / spread if spread > 0 else 0.0
        return Backlog.fitted(
            slope,
            mean,
            self._yy / self._n - mean**2,
            window_s=window_s,
            sojourn_s=self._sojourn_s,
            burstiness=self._burstiness,
        )


@dataclass(frozen=True, slots=True)
class Column:
    """A stretch of the run.

    Attributes:
        in_flight: The most requests in flight.
        ttft: TTFT of the requests that ended well in it.
    """

    in_flight: int
    ttft: Sketch

    def __add__(self, later: "Column") -> "Column":
        return Column(max(self.in_flight, later.in_flight), self.ttft + later.ttft)


class OverTime:
    """The columns of a run."""

    def __init__(self) -> None:
        self._columns: list[Column] = []
        self._medians: list[float | None] = []
        self._length_s = COLUMN_S
        self._ttft = Sketch()

    def add(self, progress: Progress) -> None:
        """Add the latest progress on the clock."""
        place = int(progress.elapsed_s / self._length_s)
        while place >= MAX_COLUMNS:
            columns = [*self._columns, *([Column(0, Sketch())] * (len(self._columns) % 2))]
            self._columns = [first + second for first, second in list(pairwise(columns))[::2]]
            self._medians = [column.ttft.p50_ms for column in self._columns]
            self._length_s *= 2
            place = int(progress.elapsed_s / self._length_s)
        latest = Column(progress.in_flight, progress.ttft - self._ttft)
        self._ttft = progress.ttft
        while len(self._columns) <= place:  # a column without progress repeats the number in flight
            self._columns.append(Column(progress.in_flight, Sketch()))
            self._medians.append(None)
        self._columns[place] += latest
        self._medians[place] = self._columns[place].ttft.p50_ms

    @property
    def in_flight(self) -> list[int]:
        """The most requests in flight in each column."""
        return [column.in_flight for column in self._columns]

    @property
    def ttft_p50_ms(self) -> list[float | None]:
        """The median TTFT in each column; None where no request ended well."""
        return list(self._medians)


def bars(values: Sequence[float | None], height: int, *, ascii_only: bool = False) -> list[str]:
    """Draw values as columns of `height` lines, the highest of them in full; what is unknown, or
    0, stays empty.
    """
    levels = ASCII_LEVELS if ascii_only else LEVELS
    top, steps = max((value for value in values if value is not None), default=0.0), len(levels) - 1
    # A value that is not 0 is to be seen.
    eighths = [
        max(1, round(value / top * height * steps)) if value and top else 0 for value in values
    ]
    return [
        "".join(levels[min(max(eighth - below * steps, 0), steps)] for eighth in eighths)
        for below in reversed(range(height))
    ]
