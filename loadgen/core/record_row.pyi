"""A record as a row of a journal: its numbers as they are, the arrays of its events, its texts."""

from typing import BinaryIO

from loadgen.core.record import Record

FIELDS: tuple[str, ...]
SIZE_BYTES: int

class RowWriter:
    """Writes the row of each record that ends; the file never grows beyond `limit` bytes."""

    sources: list[str]
    keeps_answers: bool
    error: str | None
    def __init__(self, file: BinaryIO, limit: float = ...) -> None: ...
    def write(self, record: Record) -> None:
        """Write the row of a request that has ended."""

    def append(self, data: bytes) -> None:
        """Write what is no row."""

    def flush(self) -> None:
        """Hand all rows to the system: from then on they outlive this process."""

    def close(self) -> None:
        """Hand all rows to the system, and close the file."""

def record_from_row(row: bytes, later_ns: int = 0) -> Record:
    """Make a Record from its row; `later_ns`: by how much its times are moved."""

def live() -> dict[str, int] | None: ...
