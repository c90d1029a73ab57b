"""Kept: the folder of what data sets leave for later runs, and the hashes of big files in it.

A hash is believed again while the file's path, size, times of change and inode are the same, and is kept only of a file
that has lain untouched for a while: a clock ticks too coarsely to tell two changes within a moment apart.
"""

import contextlib
import hashlib
import os
import time
from pathlib import Path

from loadgen import private

BIG_BYTES = 64 << 20  # below it a hash costs less than a twentieth of a second
SETTLED_NS = 2_000_000_000  # since its last change


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


def sha256(path: Path) -> str:
    """Return the hash of a file, in hex: of a big one that has not changed, from the last time.

    Raises:
        OSError: It cannot be read.
    """
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        if found.st_size < BIG_BYTES:
            return hashlib.file_digest(file, "sha256").hexdigest()
        state = [
            os.path.realpath(path),
            found.st_dev,
            found.st_ino,
            found.st_size,
            found.st_mtime_ns,
            found.st_ctime_ns,
        ]
        name = hashlib.sha256(repr(state).encode(errors="surrogateescape")).hexdigest()
        memory = folder() / f"{name}.sha256"
        with contextlib.suppress(OSError, ValueError):
            known = memory.read_text(encoding="ascii")
            if len(bytes.fromhex(known)) == hashlib.sha256().digest_size:
                return known
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        after = os.fstat(file.fileno())
    unchanged = (after.st_mtime_ns, after.st_ctime_ns) == (found.st_mtime_ns, found.st_ctime_ns)
    if unchanged and time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > SETTLED_NS:
        with contextlib.suppress(OSError):
            make_folder()
            with open(memory, "w", encoding="ascii", opener=private.opener) as kept:
                kept.write(digest)
    return digest
