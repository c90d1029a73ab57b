"""A temporary folder for the files of one run. A later run removes it where this run was killed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "loadgen-run-"
MIN_AGE_S = 60.0  # a younger folder may belong to a process that is about to lock it


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create an empty folder, and remove it at the end of the context.

    First remove the folders of processes that were killed. A folder in use is known by its lock, which the kernel
    releases when its process ends.
    """
    _remove_abandoned()
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _remove_abandoned() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, in use, or gone
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                state = os.fstat(descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if state.st_uid == os.getuid() and time.time() - state.st_mtime > MIN_AGE_S:
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)
