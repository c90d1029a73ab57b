"""Pieces: the records of a run's workers, each in a file of its own until they are joined.

The first worker writes where the records belong, every other one to a file beside it.
"""

import contextlib
import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from loadgen.core.record import Record
from loadgen.metrics.records.file import RecordFile, last_line
from loadgen.metrics.records.trailer import Ending

END = b'{"end":'
_BUFFER = 1 << 20


def piece(path: Path, number: int) -> Path:
    """Where the `number`-th worker writes records that belong into `path`; the 0th does at once."""
    return path.with_name(f"{path.name}.part{number + 1}") if number else path


def others(path: Path) -> Iterator[Path]:
    """The pieces that lie beside `path`: what is left of a run that was killed."""
    for one in path.parent.glob(f"{glob.escape(path.name)}.part*"):
        if one.suffix.removeprefix(".part").isdecimal():
            yield one


def told(file: RecordFile) -> Iterator[tuple[dict[str, Any], Record]]:
    """Each request of a run once, as `RecordFile.told`: of its file, and of pieces that never came to be joined.

    Raises:
        BadInput: A line is no record.
    """
    beside = [] if file.ending is not None else [piece(file.path, number) for number in range(1, file.stripe.count)]
    seen: set[int] = set()  # what was joined last may stand in a piece still
    for part in (file, *map(RecordFile, filter(Path.exists, beside))):
        for line, record in part.told():
            if record.index not in seen:
                seen.add(record.index)
                yield line, record


def join(paths: Sequence[Path]) -> str | None:
    """Make one file of these, in the place of the first; the others are gone then.

    Lines that were not written to their end are left out, and so is the end of a piece. Any of them may be missing, or
    not begun; what is no regular file is left as it is.

    Returns why it could not be done, or None.
    """
    there = [path for path in paths if path.exists()]
    if not there or not there[0].is_file():
        return None
    try:
        begun = [path for path in there if _begun(path)]
        if not begun:
            return None
        first, *others = begun
        with open(first, "r+b") as whole:
            whole.truncate(_records(whole)[1])
            whole.seek(0, os.SEEK_END)
            for path in others:
                with open(path, "rb") as more:
                    _append(more, whole)
        first.replace(paths[0])
        for path in set(there) - {first, paths[0]}:
            path.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return None


def finish(path: Path, ending: Ending) -> str | None:
    """Write the end of a run to its records, in the place of what a worker has written there, left alone.

    Returns why it could not be done, or None.
    """
    error = join([path])
    if error is None and path.is_file():
        try:
            with open(path, "ab") as file:
                file.write(END + orjson.dumps(ending.to_dict()) + b"}\n")
        except OSError as wrong:
            error = wrong.strerror or str(wrong)
    return error


def clear(path: Path) -> None:
    """Remove the pieces beside `path` in which no record can stand, as of a run that ended before its clock started."""
    for one in others(path):
        with contextlib.suppress(OSError):
            if not _begun(one):
                one.unlink()


def _begun(path: Path) -> bool:
    """Whether a piece says whose records it has; without that line no other can stand in it."""
    with open(path, "rb") as file:
        return file.readline().endswith(b"\n")


def _append(piece: BinaryIO, whole: BinaryIO) -> None:
    begin, end = _records(piece)
    piece.seek(begin)
    while begin < end and (data := piece.read(min(_BUFFER, end - begin))):
        whole.write(data)
        begin += len(data)


def _records(file: BinaryIO) -> tuple[int, int]:
    """Where the records begin in a file, and where the last whole one ends: before what stands at the end of a run."""
    file.seek(0)
    begin = len(file.readline())
    at, line = last_line(file)
    return begin, max(begin, at if line.startswith(END) else at + len(line))
