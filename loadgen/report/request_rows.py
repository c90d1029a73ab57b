"""Request rows: the records of a run as rows of a table, one for each request, in ms."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.records import shards
from loadgen.metrics.records.file import RecordFile
from loadgen.report.csv_file import Value
from loadgen.util.number_format import to_ms

RECORD_FIELDS = (
    *("index", "source", "target", "outcome", "detail", "status", "finish_reason"),
    *("attempts", "first_status"),
    *("planned_input_tokens", "planned_output_tokens", "prompt_tokens", "cached_tokens"),
)
STAMPS = ("due", "ready", "sent", "first_byte", "closed", "connect")  # ns in a record
LATENCY_ENDS = {"ttft": "first_token", "ttfo": "first_answer", "e2el": "last_token"}  # of latencies
OF_STREAMS = (  # unknown of an answer in one piece
    *(f"{metric}_{clock}_ms" for metric in ("ttft", "ttfo") for clock in ("due", "sent")),
    *("tpot_ms", "icl_max_ms"),
)
COLUMNS = (
    "file",
    *RECORD_FIELDS,
    *("output_tokens", "events"),
    *(f"{name}_ms" for name in STAMPS),
    *(f"{metric}_{clock}_ms" for metric in LATENCY_ENDS for clock in ("due", "sent")),
    *("tpot_ms", "icl_max_ms", "lag_ms"),
)


def rows(path: str) -> Iterator[dict[str, Value]]:
    """A row for each request in a file of records, in the order in which they ended.

    Raises:
        BadInput: It is no such file, or a line of it is no record.
    """
    file = RecordFile(path)
    unknown = {} if file.header.settings.streams else dict.fromkeys(OF_STREAMS)
    for line, record in shards.lines(file):
        yield {"file": path, **_row(line, record), **unknown}


def _row(line: dict[str, Any], record: Record) -> dict[str, Value]:
    row: dict[str, Value] = {name: line.get(name) for name in RECORD_FIELDS}
    row["attempts"] = record.attempts if record.sent else 0
    row |= {f"{name}_ms": to_ms(line[name]) for name in STAMPS}
    sent = line["sent"]
    for metric, end in LATENCY_ENDS.items():
        row[f"{metric}_due_ms"] = to_ms(line[end])
        row[f"{metric}_sent_ms"] = None if line[end] is None else to_ms(line[end] - sent)
    ok = record.outcome is Outcome.OK
    gaps = [later - earlier for earlier, later in pairwise(line["token_times"])]
    return row | {
        "output_tokens": record.answer_tokens if ok else None,
        "events": record.events,
        "tpot_ms": to_ms(record.tpot_ns) if ok else None,
        "icl_max_ms": to_ms(max(gaps, default=None)),
        "lag_ms": to_ms(record.lag_ns),
    }
