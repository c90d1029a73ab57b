"""Parts: the records of a run's workers, each in a file of its own until they are put together.

The first worker writes where the records belong, every other one to a file beside it.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import orjson

from loadgen.ending import Ending
from loadgen.records import last_line

END = b'{"end":'
_BUFFER = 1 << 20


def part(path: Path, number: int) -> Path:
    """Where the `number`-th worker writes records that belong into `path`; the 0th does at once."""
    return path.with_name(f"{path.name}.part{number + 1}") if number else path


def left(path: Path) -> Iterator[Path]:
    """The parts that lie beside `path`: what is left of a run that was killed."""
    yield from path.parent.glob(f"{path.name}.part*")


def put_together(paths: Sequence[Path], ending: Ending | None) -> str | None:
    """Make one file of the parts, in that of the first; the others are gone then.

    Lines that a worker had not written to their end are left out. What is no regular file is left as it is.

    Args:
        paths: Of the parts; one that is not there has nothing in it.
        ending: Of the whole run; None where the records are not complete.

    Returns why it could not be done, or None.
    """
    first, *others = paths
    if first.exists() and not first.is_file():
        return None
    try:
        with open(first, "r+b") as whole:
            whole.truncate(_records(whole)[1])
            whole.seek(0, os.SEEK_END)
            for path in others:
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as more:
                    _append(more, whole)
            if ending is not None:
                whole.write(END + orjson.dumps(ending.to_dict()) + b"}\n")
    except OSError as error:
        return error.strerror or str(error)
    for path in others:
        path.unlink(missing_ok=True)
    return None


def _append(part: BinaryIO, whole: BinaryIO) -> None:
    begin, end = _records(part)
    part.seek(begin)
    while begin < end and (data := part.read(min(_BUFFER, end - begin))):
        whole.write(data)
        begin += len(data)


def _records(file: BinaryIO) -> tuple[int, int]:
    """Where the records begin in a file, and where the last whole one ends: before what stands at the end of a run."""
    file.seek(0)
    begin = len(file.readline())
    at, line = last_line(file)
    return begin, max(begin, at if line.startswith(END) else at + len(line))
