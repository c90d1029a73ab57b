"""Private: files for their owner alone, because prompts, answers or what else is confidential may be in them."""

import os
import stat
from pathlib import Path


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


def state_folder() -> Path:
    """Where what outlives a run is kept, by the XDG base directory specification."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "loadgen"
