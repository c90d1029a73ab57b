"""Records of a data file: the objects of a JSON list or of JSON lines, the lines of CSV, or the rows of Parquet."""

import csv
import io
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.util.packages import require
from loadgen.workload.files.json_index import Structure
from loadgen.workload.files.mapped_file import DATASET_PATH, map_file, parse_object

Record = dict[str, Any]
SUFFIXES = (".parquet", ".jsonl", ".json", ".csv")
REMEDY = f"give a file of the data set, as the hub has it: {', '.join(SUFFIXES)}"
MARK = b"\xef\xbb\xbf"  # byte order mark
SPACE = b" \t\r\n"


def records(path: Path) -> Iterator[Record]:
    """Yield the records of a file in its order, reading only as far as they are needed.

    Raises:
        BadInput: The file cannot be read, is not of its format, or needs a package that is not installed.
    """
    if path.suffix == ".parquet":
        yield from _parquet(path)
        return
    data = map_file(path, REMEDY)
    if path.suffix == ".csv":
        yield from _csv(path, data)
        return
    start = len(MARK) if data[: len(MARK)] == MARK else 0
    is_list = data[start : start + 4096].lstrip(SPACE)[:1] == b"["
    for where, content in _list(path, data) if is_list else _lines(data):
        yield parse_object(path, where, content, REMEDY)


def _list(path: Path, data: mmap.mmap) -> Iterator[tuple[str, bytes]]:
    structure, number = Structure(data, b""), 0
    for spans in structure:
        for start, end, _ in spans.tolist():
            number += 1
            yield f"record {number}", data[start:end]
    if structure.end is None:
        raise BadInput(DATASET_PATH, f"{path} is cut off after record {number}", "copy the file again")


def _lines(data: mmap.mmap) -> Iterator[tuple[str, bytes]]:
    for number, line in enumerate(iter(data.readline, b""), 1):
        if content := line.removeprefix(MARK).strip(SPACE):
            yield f"line {number}", content


def _csv(path: Path, data: mmap.mmap) -> Iterator[Record]:
    try:
        yield from csv.DictReader(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline=""))
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(DATASET_PATH, f"{path} is not CSV ({error})", REMEDY) from error


def _parquet(path: Path) -> Iterator[Record]:
    require(DATASET_PATH, f"reading {path.name}", "pyarrow")
    from pyarrow import ArrowException, parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield from batch.to_pylist()
    except (OSError, ArrowException) as error:
        raise BadInput(DATASET_PATH, f"{path} is not Parquet ({error})", REMEDY) from error
