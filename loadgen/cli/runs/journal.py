"""The journal: a file of records that every run writes as it goes on, so that no run is lost
when it crashes.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from loadgen.cli.output import say
from loadgen.metrics.records import shards
from loadgen.util import files, machine

MAX_KEPT = 10
PATTERN = "*.jsonl"


class Journal(Struct):
    """The journal of one run.

    Attributes:
        path: The file; None if no journal is wanted, or the user's state folder cannot be written.
        needed: Whether to leave the file after the run; set it to False once the results of the run
            are safe elsewhere.
        error: Why the journal is incomplete, if it is.
    """

    path: Path | None
    needed: bool = True
    error: str | None = None


@contextlib.contextmanager
def journal(enabled: bool) -> Iterator[Journal]:
    """Open a journal for one run; at the end remove it, or print its path if it is still needed.

    Args:
        enabled: False for a run that writes its records to a file of the user's anyway.
    """
    opened = Journal(_create() if enabled else None)
    try:
        yield opened
    finally:
        if opened.path is not None:
            if opened.needed and _holds_records(opened.path):
                problem = f" (incomplete: {opened.error})" if opened.error else ""
                say(
                    f"the records of this run are kept{problem}; to print its report: loadgen "
                    f"report {opened.path}"
                )
            else:
                _remove(opened.path)


def journals() -> list[Path]:
    """List the journals with records that ended runs have left, the latest last."""
    return [path for path in _leftover_paths() if _holds_records(path)]


def _leftover_paths() -> list[Path]:
    left = []
    for path in files.state_folder().glob(PATTERN):
        process = path.stem.rpartition("-")[2]
        is_own = process == str(os.getpid())
        if is_own or not process.isdecimal() or not machine.is_running(int(process)):
            left.append(path)
    return sorted(left, key=lambda path: path.stat().st_mtime)


def _holds_records(path: Path) -> bool:
    """Whether there is a second line, the first being the header."""
    try:
        with open(path, "rb") as file:
            return sum(1 for _ in zip(file, range(2), strict=False)) == 2
    except OSError:
        return False


def _create() -> Path | None:
    path = files.state_folder() / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in _leftover_paths()[: 1 - MAX_KEPT]:
            _remove(old)
        with open(path, "xb", opener=files.private_opener):
            pass
    except OSError as error:
        why = f"{path.parent} cannot be written ({error.strerror})"
        say(f"no crash journal: {why}; set XDG_STATE_HOME to a writable folder")
        return None
    return path


def _remove(path: Path) -> None:
    for file in (path, *shards.further_shards(path)):
        file.unlink(missing_ok=True)
