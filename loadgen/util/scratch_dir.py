"""Scratch: a folder for the files of one run, which the next run removes where this one could not."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "loadgen-run-"
NEW_S = 60.0  # a folder that its maker may be about to lock


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """An empty folder, removed in the end; those of programs that were killed are removed at the beginning.

    A lock tells them apart, which the kernel takes away with the program that held it.
    """
    _remove_left()
    path = Path(tempfile.mkdtemp(prefix=PREFIX))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _remove_left() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # it is somebody else's, or in use, or gone
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                about = os.fstat(descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if about.st_uid == os.getuid() and time.time() - about.st_mtime > NEW_S:
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)
