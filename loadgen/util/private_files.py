"""Private: files for their owner alone, because prompts, answers or what else is confidential may be in them."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from loadgen.errors import BadInput

_BUFFER = 1 << 16


def opener(path: str, flags: int) -> int:
    """For `open(path, "wb", opener=opener)`: only its owner can read the file, also one that others could until now.

    What is no regular file (a device, a pipe) is opened as it is.

    Raises:
        OSError: It cannot be opened, or belongs to somebody else; it is then left as it was.
    """
    descriptor = os.open(path, flags & ~os.O_TRUNC, 0o600)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)  # before it is emptied: where that is refused nothing is lost
            if flags & os.O_TRUNC:
                os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def create(field: str, path: str | Path) -> BinaryIO:
    """An empty file for its owner alone, to write; what stood in it is gone.

    Args:
        field: The flag that named it, for the error.
        path: Where.

    Raises:
        BadInput: It cannot be written.
    """
    try:
        return open(path, "wb", buffering=_BUFFER, opener=opener)
    except OSError as error:
        raise BadInput(field, f"{path}: {error.strerror}", "name a file that can be written") from error


def state_folder() -> Path:
    """Where what outlives a run is kept, by the XDG base directory specification."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "loadgen"
