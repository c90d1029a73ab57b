"""Tally: sums and histograms over the requests of a run, each record counted once when it has ended."""

from array import array
from typing import Any, final

from loadgen.core.histogram import Histogram
from loadgen.core.record import Record
from loadgen.core.timeline import Timeline

@final
class Latency:
    """Counts the values of one latency, ns, each with the least and the greatest that it may truly have been."""

    @property
    def points(self) -> Histogram:
        """A new histogram of the values."""
    @property
    def lower(self) -> Histogram:
        """A new histogram of the least that each may truly have been."""
    @property
    def upper(self) -> Histogram:
        """A new histogram of the greatest that each may truly have been."""
    def __init__(self) -> None: ...

def fold_events(record: Record, icl: Latency, itl: Latency, bins: Any, start_ns: int, bin_ns: int) -> int:
    """Add a record's gaps to `icl` and `itl` and its tokens to `bins`; return how many gaps in `itl` were imputed."""

@final
class Tally:
    output_tokens: int
    bins: array[int]
    @property
    def timeline(self) -> Timeline: ...
    def __init__(
        self,
        start_ns: int,
        bin_ns: int,
        latencies: dict[str, Latency],
        waits: dict[str, Histogram],
        from_due: bool = True,
    ) -> None: ...
    def add(self, record: Record) -> None: ...
