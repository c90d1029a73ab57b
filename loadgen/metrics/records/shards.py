"""Shards of a journal: each worker of a run writes its own file.

The first worker writes to the path of the whole, every other one to a file beside it.
"""

import contextlib
import glob
from pathlib import Path


def shard_path(path: Path, index: int) -> Path:
    """Return where the worker with this index, from 0, writes records that belong into `path`."""
    return path.with_name(f"{path.name}.part{index + 1}") if index else path


def further_shards(path: Path) -> list[Path]:
    """List the shards beside `path`, in their order."""
    shards = []
    for shard in path.parent.glob(f"{glob.escape(path.name)}.part*"):
        number = shard.suffix.removeprefix(".part")
        if number.isdecimal():
            shards.append((int(number), shard))
    return [shard for _, shard in sorted(shards)]


def is_begun(path: Path) -> bool:
    """Return whether a journal is there and has a whole header; without it, it holds no record.

    Raises:
        OSError: It cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.readline().endswith(b"\n")
    except FileNotFoundError:
        return False


def holds_records(path: Path) -> bool:
    """Return whether the file of a run, or a shard beside it, has more than its first line."""
    for shard in (path, *further_shards(path)):
        with contextlib.suppress(OSError), open(shard, "rb") as file:
            if file.readline() and file.read(1):
                return True
    return False


def remove_empty_shards(path: Path) -> None:
    """Remove the shards beside `path` without a header, as of a run that ended before its clock
    started.
    """
    for shard in further_shards(path):
        with contextlib.suppress(OSError):
            if not is_begun(shard):
                shard.unlink()
