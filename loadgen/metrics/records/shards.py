"""Shards of a records file: each worker of a run writes its own file, and they are joined at the
end.

The first worker writes to the path of the whole, every other one to a file beside it.
"""

import contextlib
import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from msgspec import structs

from loadgen.core.record import Record
from loadgen.metrics.records.file import RecordFile, last_line
from loadgen.metrics.records.trailer import RunTrailer
from loadgen.metrics.snapshot import LoopTotals

TRAILER = b'{"end":'
_BUFFER = 1 << 20


def shard_path(path: Path, index: int) -> Path:
    """Return where the worker with this index, from 0, writes records that belong into `path`."""
    return path.with_name(f"{path.name}.part{index + 1}") if index else path


def further_shards(path: Path) -> Iterator[Path]:
    """Find the shards beside `path`: they are there while a run goes on, or after it was killed."""
    for shard in path.parent.glob(f"{glob.escape(path.name)}.part*"):
        if shard.suffix.removeprefix(".part").isdecimal():
            yield shard


def lines(file: RecordFile) -> Iterator[tuple[dict[str, Any], Record]]:
    """Iterate over each request of a run once, as `RecordFile.lines`, also over shards that were
    never joined.

    Raises:
        BadInput: A line is no record.
    """
    indices = range(1, file.partition.count) if file.trailer is None else ()
    further = [shard_path(file.path, index) for index in indices]
    done: set[int] = set()  # a run that was killed while shards were joined has some records twice
    for part in (file, *map(RecordFile, filter(Path.exists, further))):
        for data, record in part.lines():
            if record.index not in done:
                done.add(record.index)
                yield data, record


def join_shards(paths: Sequence[Path]) -> str | None:
    """Join these files to one in the place of the first, and remove the others.

    Lines that are cut off are left out, and so are trailers of shards. A shard may be missing or
    empty. What is no regular file is left as it is.

    Returns:
        Why it could not be done, or None.
    """
    there = [path for path in paths if path.exists()]
    if not there or not there[0].is_file():
        return None
    try:
        begun = [path for path in there if _has_header(path)]
        if not begun:
            return None
        first, *others = begun
        with open(first, "r+b") as whole:
            whole.truncate(_record_range(whole)[1])
            whole.seek(0, os.SEEK_END)
            for path in others:
                with open(path, "rb") as shard:
                    _append(shard, whole)
        first.replace(paths[0])
        for path in set(there) - {first, paths[0]}:
            path.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return None


def write_trailer(path: Path, trailer: RunTrailer, totals: LoopTotals) -> str | None:
    """Write the trailer of a run to its records, in the place of one that a worker wrote on its
    own.

    Returns:
        Why it could not be done, or None.
    """
    error = join_shards([path])
    if error is None and path.is_file():
        try:
            with open(path, "ab") as file:
                file.write(
                    TRAILER + orjson.dumps(trailer.to_dict(totals), default=structs.asdict) + b"}\n"
                )
        except OSError as wrong:
            error = wrong.strerror or str(wrong)
    return error


def remove_empty_shards(path: Path) -> None:
    """Remove the shards beside `path` without a header, as of a run that ended before its clock
    started.
    """
    for shard in further_shards(path):
        with contextlib.suppress(OSError):
            if not _has_header(shard):
                shard.unlink()


def _has_header(path: Path) -> bool:
    """Return whether a file has a whole first line; without it, it holds no record."""
    with open(path, "rb") as file:
        return file.readline().endswith(b"\n")


def _append(shard: BinaryIO, whole: BinaryIO) -> None:
    begin, end = _record_range(shard)
    shard.seek(begin)
    while begin < end and (data := shard.read(min(_BUFFER, end - begin))):
        whole.write(data)
        begin += len(data)


def _record_range(file: BinaryIO) -> tuple[int, int]:
    """Return the offsets between which the records of a file stand: after the header, before a
    trailer.
    """
    file.seek(0)
    begin = len(file.readline())
    at, line = last_line(file)
    return begin, max(begin, at if line.startswith(TRAILER) else at + len(line))
