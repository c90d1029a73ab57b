"""Files that only their owner can read, because they may contain prompts, answers or other confidential text."""

import fcntl
import os
import stat
from functools import partial
from pathlib import Path
from typing import BinaryIO

from loadgen.errors import BadInput

_BUFFER = 1 << 16


def opener(
    path: str,
    flags: int,  # those of `os.open`
    *,
    locks: bool = False,  # whether to lock the file until it is closed
) -> int:
    """Open a file with mode 0600, also where it existed with another mode: for `open(path, "wb", opener=opener)`.

    Raises:
        BlockingIOError: Another process has locked it. It has not changed.
        OSError: The file cannot be opened, or belongs to another user. It has not changed.
    """
    # A path that is not a regular file (a device, a pipe) is opened without a change of its mode, and not locked.
    descriptor = os.open(path, flags & ~os.O_TRUNC, 0o600)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            if locks:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(descriptor, 0o600)  # before it is truncated: a refusal loses nothing
            if flags & os.O_TRUNC:
                os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def create(field: str, path: str | Path) -> BinaryIO:
    """Create or truncate a private file, and return it open for writing and locked until it is closed.

    Raises:
        BadInput: The file, which the flag `field` names, cannot be written, or another run writes it.
    """
    try:
        return open(path, "wb", buffering=_BUFFER, opener=partial(opener, locks=True))
    except BlockingIOError as error:
        raise BadInput(field, f"{path}: another run is writing this file", "name another file") from error
    except OSError as error:
        raise BadInput(field, f"{path}: {error.strerror}", "name a writable file") from error


def state_folder() -> Path:
    """Return the state folder of loadgen, by the XDG base directory specification."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "loadgen"
