"""SHA-256 of files. The hash of a large file is kept in the cache.

A cached hash is used while the file's size, times and inode are the same. It is stored only for a file that has not
changed for a while, because a file's clock is too coarse to show two changes in a row.
"""

import hashlib
import os
import time
from pathlib import Path

from loadgen.workload.files import cache

BIG_BYTES = 1 << 20  # a smaller file is hashed in 2 ms
SETTLED_NS = 2_000_000_000  # minimum time since the last change
SUFFIX = ".sha256"


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hex; of a large file that has not changed, from the cache.

    Raises:
        OSError: The file cannot be read.
    """
    with open(path, "rb") as file:
        before = os.fstat(file.fileno())
        if before.st_size < BIG_BYTES:
            return hashlib.file_digest(file, "sha256").hexdigest()
        name = f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()}{SUFFIX}"
        known, _, stamp = (cache.read(name) or b"").decode("ascii").partition(" ")
        if known and stamp == _stamp(before):
            return known
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        after = os.fstat(file.fileno())
    settled = time.time_ns() - max(before.st_mtime_ns, before.st_ctime_ns) > SETTLED_NS
    if settled and _stamp(after) == _stamp(before):
        cache.write(name, f"{digest} {_stamp(before)}".encode("ascii"))
    return digest


def _stamp(state: os.stat_result) -> str:
    return " ".join(map(str, (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)))
