"""Counter: counts the requests of a run, each when it has ended."""

from collections.abc import Callable
from typing import final

from loadgen.core.accumulator import Tally
from loadgen.core.record import Record
from loadgen.core.request_rows import RequestRows

@final
class Counter:
    """Counts records that have their outcome; counter.pyx says more."""

    ended: int
    ok: int
    finishes: dict[str, int]
    early_stops: dict[str, int]
    def __init__(
        self,
        tally: Tally,
        rows: RequestRows,
        add_more: Callable[[Record], None],
        *,
        always: bool,
        silence_ns: int,
    ) -> None: ...
    def divide(self, parts: list[Counter], classes: int) -> None: ...
    def add(self, record: Record) -> None: ...
