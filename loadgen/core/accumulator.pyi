"""Tally: sums and histograms over the requests of a run, each record counted once when it has
ended.
"""

from array import array
from typing import final

from loadgen.core.histogram import Histogram
from loadgen.core.record import Record
from loadgen.core.sketch import Sketch, Timeline

@final
class Latency:
    """Counts the values of one latency, ns, each with the least and the greatest that it may
    truly have been.
    """

    @property
    def points(self) -> Histogram:
        """A new histogram of the values."""
    @property
    def sketch(self) -> Sketch:
        """The sketch of the values."""
    @property
    def lower(self) -> Histogram:
        """A new histogram of the least that each may truly have been."""
    @property
    def upper(self) -> Histogram:
        """A new histogram of the greatest that each may truly have been."""
    def __init__(self) -> None: ...

@final
class Tally:
    output_tokens: int
    imputed_gaps: int
    bins: array[int]
    timeline: Timeline
    def __init__(
        self,
        start_ns: int,
        bin_ns: int,
        latencies: dict[str, Latency],
        waits: dict[str, Histogram],
        from_due: bool = True,
        limits: dict[str, int] | None = None,
    ) -> None: ...
    def add(self, record: Record) -> None: ...

def live() -> dict[str, int] | None: ...
