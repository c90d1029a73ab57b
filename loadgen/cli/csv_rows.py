"""Rows: results, or the requests of records, as a table of CSV."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from loadgen.errors import BadInput

STDOUT = "-"


def write(paths: Sequence[str], to: str) -> None:
    """Write a row for each run, or of records one for each request.

    Args:
        paths: Results, or records.
        to: A file, or "-".

    Raises:
        BadInput: Some are records and others are not; one cannot be read; or it cannot be written.
    """
    from loadgen.util.atomic_file import whole_file

    lines = _lines(paths)
    if to == STDOUT:
        sys.stdout.writelines(lines)
        return
    try:
        with whole_file(Path(to)) as file:
            file.writelines(line.encode() for line in lines)
    except OSError as error:
        raise BadInput("--csv", f"{to} cannot be written ({error.strerror})", "name another file") from error


def _lines(paths: Sequence[str]) -> Iterator[str]:
    from loadgen.metrics.records.file import RecordFile
    from loadgen.report import csv_file, request_rows, run_rows, typed
    from loadgen.runner import run_result

    records = [path for path in paths if RecordFile.is_one(path)]
    if not records:
        runs = []
        for path in paths:
            found = run_result.read(path)
            with run_result.whole(path):
                runs += run_rows.rows(path, map(typed, found))
        return csv_file.lines(run_rows.columns(runs), runs)
    if others := [path for path in paths if path not in records]:
        problem = f"{records[0]} has a row for each request, {others[0]} one for each run"
        raise BadInput("FILE", problem, "write them to two files")
    return csv_file.lines(request_rows.COLUMNS, (row for path in paths for row in request_rows.rows(path)))
