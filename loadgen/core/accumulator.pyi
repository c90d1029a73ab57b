"""Tally: sums and histograms over the requests of a run, each record counted once when it has ended."""

from array import array
from typing import Any, final

from loadgen.core.histogram import Histogram
from loadgen.core.record import Record
from loadgen.core.timeline import Timeline

def fold_events(record: Record, icl: Histogram, itl: Histogram, bins: Any, start_ns: int, bin_ns: int) -> int:
    """Add a record's gaps to `icl` and `itl` and its tokens to `bins`; return how many gaps in `itl` were imputed."""

@final
class Tally:
    output_tokens: int
    bins: array[int]
    @property
    def timeline(self) -> Timeline: ...
    def __init__(self, start_ns: int, bin_ns: int, histograms: dict[str, Histogram], from_due: bool = True) -> None: ...
    def add(self, record: Record) -> None: ...
