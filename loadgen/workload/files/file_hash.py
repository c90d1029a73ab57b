"""Hashes: what a file's content is known by; that of a big one is kept between runs.

A hash is believed again while the file's size, times of change and inode are the same, and is kept only of a file that
has lain untouched for a while: a clock ticks too coarsely to tell two changes within a moment apart.
"""

import contextlib
import hashlib
import os
import time
from pathlib import Path

from loadgen.util import private_files
from loadgen.workload.files import cache_folder

BIG_BYTES = 64 << 20  # below it a hash costs less than a twentieth of a second
SETTLED_NS = 2_000_000_000  # since its last change
ENDING = ".sha256"


def sha256(path: Path) -> str:
    """Return the hash of a file, in hex: of a big one that has not changed, from the last time.

    Raises:
        OSError: It cannot be read.
    """
    with open(path, "rb") as file:
        before = os.fstat(file.fileno())
        if before.st_size < BIG_BYTES:
            return hashlib.file_digest(file, "sha256").hexdigest()
        place = cache_folder.folder() / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()}{ENDING}"
        known = _known(place, _stamp(before))
        if known is not None:
            return known
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        after = os.fstat(file.fileno())
    settled = time.time_ns() - max(before.st_mtime_ns, before.st_ctime_ns) > SETTLED_NS
    if settled and _stamp(after) == _stamp(before):
        with contextlib.suppress(OSError):
            cache_folder.make_folder()
            with open(place, "w", encoding="ascii", opener=private_files.opener) as memory:
                memory.write(f"{digest} {_stamp(before)}")
    return digest


def _known(place: Path, stamp: str) -> str | None:
    """The hash that was kept of a file, if it was as it is now."""
    with contextlib.suppress(OSError, ValueError):
        digest, _, of = place.read_text(encoding="ascii").partition(" ")
        if of == stamp and len(bytes.fromhex(digest)) == hashlib.sha256().digest_size:
            with contextlib.suppress(OSError):
                os.utime(place)  # it was used, and is not the next to go
            return digest
    return None


def _stamp(found: os.stat_result) -> str:
    """Which file it is, and as of when."""
    return " ".join(map(str, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)))
