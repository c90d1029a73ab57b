from array import array
from typing import final

from loadgen.core.histogram import Histogram
from loadgen.core.timeline import Timeline
from loadgen.core.wire import Record

@final
class Tally:
    output_tokens: int
    bins: array[int]
    @property
    def timeline(self) -> Timeline: ...
    def __init__(self, start_ns: int, bin_ns: int, histograms: dict[str, Histogram], from_due: bool = True) -> None: ...
    def add(self, record: Record) -> None: ...
