"""A record as a line of JSON, as docs/records.md describes it."""

from loadgen.core.record import Record

def record_line(record: Record, start_ns: int, source: str | None, *, answer: bool = False) -> bytes:
    """Return an ended record as a line of JSON; `answer`: with the text of its answer."""

def live() -> dict[str, int] | None: ...
