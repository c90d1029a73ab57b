"""A run over time for the live view: in-flight requests and the median TTFT, in columns of equal length."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from loadgen.core.sketch import Sketch
from loadgen.metrics.progress import Progress

MAX_COLUMNS = 96
COLUMN_S = 0.25  # the first columns; twice as long each time there are more than MAX_COLUMNS
LEVELS, ASCII_LEVELS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"


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
            self._halve()
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

    def _halve(self) -> None:
        columns = [*self._columns, *([Column(0, Sketch())] * (len(self._columns) % 2))]
        self._columns = [one + other for one, other in list(pairwise(columns))[::2]]
        self._medians = [column.ttft.p50_ms for column in self._columns]
        self._length_s *= 2


def bars(values: Sequence[float | None], height: int, *, ascii_only: bool = False) -> list[str]:
    """Draw values as columns of `height` lines, the highest of them in full; what is unknown, or 0, stays empty."""
    levels = ASCII_LEVELS if ascii_only else LEVELS
    top, steps = max((value for value in values if value is not None), default=0.0), len(levels) - 1
    # A value that is not 0 is to be seen.
    eighths = [max(1, round(value / top * height * steps)) if value and top else 0 for value in values]
    return [
        "".join(levels[min(max(eighth - below * steps, 0), steps)] for eighth in eighths)
        for below in reversed(range(height))
    ]
