"""Kept: the folder of what data sets leave for later runs, and how much may lie there."""

import contextlib
import os
import time
from pathlib import Path

DRAFT = ".draft"  # ends the name of what is still being written
ABANDONED_S = 86_400.0  # after which nobody is still writing


def folder() -> Path:
    """Where it is, by the XDG base directory specification; it need not be there."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "loadgen" / "datasets"


def make_folder() -> Path:
    """The folder, made for its owner alone where it is not there.

    Raises:
        OSError: It cannot be made.
    """
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder()


def make_room(most: int) -> None:
    """Remove what was used longest ago, until the rest has no more than `most` bytes; and abandoned drafts.

    Raises:
        OSError: Something cannot be removed.
    """
    states = []
    for path in folder().iterdir():
        with contextlib.suppress(FileNotFoundError):
            states.append((path, path.stat()))
    held = 0
    for path, state in sorted(states, key=lambda found: -found[1].st_mtime):
        is_draft = path.suffix == DRAFT
        held += 0 if is_draft else state.st_size
        if time.time() - state.st_mtime > ABANDONED_S if is_draft else held > most:
            path.unlink(missing_ok=True)
