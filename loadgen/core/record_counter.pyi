"""RecordCounter: counts the requests of a run, each when it has ended."""

from collections.abc import Callable
from typing import Protocol, final

from loadgen.core.accumulator import Tally
from loadgen.core.record import Record
from loadgen.core.request_rows import RequestRows

class _Incidents(Protocol):
    def add_failure(self, record: Record) -> None: ...
    def add_retried(self, record: Record) -> None: ...
    def add_unread(self, record: Record) -> None: ...
    def add_silence(self, record: Record) -> None: ...

@final
class RecordCounter:
    """Counts records that have their outcome; record_counter.pyx says more."""

    ended: int
    ok: int
    finishes: dict[str, int]
    early_stops: dict[str, int]
    said_times: dict[str, int]
    def __init__(
        self,
        tally: Tally,
        rows: RequestRows,
        incidents: _Incidents,
        *,
        silence_ns: int,
        add_details: Callable[[Record], None] | None,
    ) -> None: ...
    def add(self, record: Record) -> None: ...

@final
class RecordDivider:
    """Has each record counted by what counts those of its target and class."""

    def __init__(self, adds: list[Callable[[Record], None]], classes: int) -> None: ...
    def add(self, record: Record) -> None: ...
