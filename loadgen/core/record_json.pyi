"""A record as a line of JSON, as docs/records.md describes it."""

from loadgen.core.record import Record

def record_line(
    record: Record,
    start_ns: int,
    *,
    answer: bool = False,
    class_name: str | None = None,
    trace: tuple[str, str] | None = None,
) -> bytes:
    """Return an ended record as a line of JSON; `answer`: with the text of its answer;
    `class_name`: with its class; `trace`: with the ids of its trace and its span.
    """

def live() -> dict[str, int] | None: ...
