"""Journal: the records that every run leaves on disk while it goes on, so that none is lost however it ends."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from loadgen.util import machine, private_files

MOST_KEPT = 10
PATTERN = "*.jsonl"


class Journal:
    """The journal of one run.

    Attributes:
        path: The file; None where none is wanted, or the user's state folder cannot be written.
        needed: Whether it is to be kept; set it to False once nothing of the run can be lost any more.
        error: Why not all that was measured stands in it, where that is known.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.needed = path, True
        self.error: str | None = None

    @property
    def holds_records(self) -> bool:
        """Whether any request stands in it."""
        return self.path is not None and _holds_records(self.path)


@contextlib.contextmanager
def journal(wanted: bool) -> Iterator[Journal]:
    """A journal for one run; where it is needed afterwards, its path is printed, else it is removed.

    Args:
        wanted: Whether there is to be one: a run whose records are kept in a file of the user's needs none.
    """
    kept = Journal(_new() if wanted else None)
    try:
        yield kept
    finally:
        if kept.path is not None:
            if kept.needed and kept.holds_records:
                part = f"a part ({kept.error}) of " if kept.error else ""
                said = f"{part}what was measured is kept; print it with: loadgen report {kept.path}"
                print(f"loadgen: {said}", file=sys.stderr)
            else:
                _remove(kept.path)


def journals() -> list[Path]:
    """The journals that runs have left with records, the latest last; of runs that go on there are none yet."""
    return [path for path in _left() if _holds_records(path)]


def _left() -> list[Path]:
    left = [path for path in private_files.state_folder().glob(PATTERN) if not _goes_on(path)]
    return sorted(left, key=lambda path: path.stat().st_mtime)


def _holds_records(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return sum(1 for _ in zip(file, range(2), strict=False)) == 2
    except OSError:
        return False


def _goes_on(path: Path) -> bool:
    process = path.stem.rpartition("-")[2]
    return process.isdecimal() and int(process) != os.getpid() and machine.is_running(int(process))


def _new() -> Path | None:
    import time

    path = private_files.state_folder() / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in _left()[: 1 - MOST_KEPT]:
            _remove(old)
        with open(path, "xb", opener=private_files.opener):
            pass
    except OSError as error:
        why = f"{path.parent} cannot be written ({error.strerror})"
        print(f"loadgen: nothing of this run would outlive it: {why}; set XDG_STATE_HOME", file=sys.stderr)
        return None
    return path


def _remove(path: Path) -> None:
    from loadgen.metrics.records import shards

    for one in (path, *shards.further_shards(path)):
        one.unlink(missing_ok=True)
