"""NumberSample: which requests of a run are in a sample of them."""

from typing import final

from loadgen.core.record import Record

@final
class NumberSample:
    """Numbers of requests, spread evenly over a run; number_sample.pyx says more."""

    records: list[Record]
    def __init__(self, of: int, most: int) -> None: ...
    def keep(self, record: Record) -> None: ...
    def take(self, index: int) -> bool: ...
