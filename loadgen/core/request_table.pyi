"""RequestTable: what is planned of each prepared request, and its body in a file."""

from array import array
from collections.abc import Callable
from typing import final

from loadgen.core.record import Record

@final
class RequestTable:
    """The rows of a store of requests; request_table.pyx says more."""

    add_rows: Callable[[], bool] | None
    output_tokens: int
    def __init__(self, file: int) -> None: ...
    def __len__(self) -> int: ...
    def extend(
        self,
        ends: array[int],
        input_tokens: array[int],
        output_tokens: array[int],
        server_tokens: array[int],
        classes: array[int],
        texts: array[int],
    ) -> None: ...
    def row(self, index: int) -> int: ...
    def tokens(self, index: int) -> tuple[int, int]: ...
    def record(self, index: int, due_ns: int) -> Record: ...
    def body(self, index: int) -> bytes: ...

def live() -> dict[str, int] | None: ...
