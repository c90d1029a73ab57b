"""RequestRows: a packed row for each request that has ended."""

from typing import final

from loadgen.core.record import Record

# In place of the latencies of a request that was not ok: LEFT where its user ended it.
FAILED: int
CANCELLED: int
LEFT: int
NO_TPOT: int  # of an answer of one token

@final
class RequestRows:
    """The rows of a run, in the order in which requests ended; request_rows.pyx says more."""

    def __init__(self, start_ns: int, from_due: bool) -> None: ...
    def add(self, record: Record) -> None: ...
    def __bytes__(self) -> bytes: ...
