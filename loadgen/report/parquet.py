"""Parquet: the records of a run as a table, a row for each request, in ns as in the records.

Numbers, texts and lists of numbers are columns of their kind. What has another shape is JSON text.
The first line of the records is in the metadata of the file, under `loadgen`.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from loadgen.metrics.records.file import RecordFile
from loadgen.util import packages
from loadgen.util.files import atomic_file, private_opener

FLAG = "--parquet"
ROWS_AT_ONCE = 4096
TEXTS = ("source", "outcome", "detail", "finish_reason", "class", "trace_id", "span_id", "answer")
SWITCHES = ("reused", "window_filled")
LISTS = ("tokens_per_event", "token_times", "read_late", "tcp")
AS_JSON = ("matched_stop", "unread", "stream", "earliest", "connect_parts", "server_times")
NUMBERS = (
    *("index", "target", "session", "turn", "status"),
    *("planned_input_tokens", "planned_output_tokens", "predicted_server_input_tokens"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "total_tokens"),
    *("due", "ready", "sent", "written", "connect", "first_byte", "first_token", "first_answer"),
    *("last_token", "closed", "first_answer_earliest", "user_stamped", "reordered", "reads"),
    *("content_events", "reasoning_events", "other_events", "nan_events", "counted_by", "done"),
    *("whole", "results", "disconnect_tokens", "disconnect_after"),
    *("attempts", "retried", "first_status", "first_sent", "first_closed"),
)


def write(path: str, to: str) -> int:
    """Write the records of a run as Parquet.

    Args:
        path: A file of records.
        to: The file to write; it is complete or not written at all.

    Returns:
        The number of its rows.

    Raises:
        BadInput: pyarrow is missing, or the file has no records.
        OSError: The file cannot be written.
    """
    packages.require(FLAG, "Parquet", "pyarrow")
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from pyarrow import parquet

    file = RecordFile(path)
    kinds = {
        **dict.fromkeys(NUMBERS, pyarrow.int64()),
        **dict.fromkeys((*TEXTS, *AS_JSON), pyarrow.string()),
        **dict.fromkeys(SWITCHES, pyarrow.bool_()),
        **dict.fromkeys(LISTS, pyarrow.list_(pyarrow.int64())),
    }
    with open(path, "rb") as lines:
        heading = lines.readline().strip()
    schema = pyarrow.schema(kinds.items(), metadata={"loadgen": heading})
    rows = _rows(file)
    count = 0
    with (
        atomic_file(Path(to), private_opener) as target,
        parquet.ParquetWriter(target, schema) as writer,
    ):
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema))
            count += len(batch)
    return count


def _rows(file: RecordFile) -> Iterator[dict[str, Any]]:
    for line in file.lines():
        row: dict[str, Any] = orjson.loads(line)
        for name in AS_JSON:
            if row.get(name) is not None:
                row[name] = orjson.dumps(row[name]).decode()
        yield row
