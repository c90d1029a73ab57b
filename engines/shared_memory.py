"""Shared memory: the segments that processes map, which outlive them unless somebody removes them."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path("/dev/shm")


def segments(pids: Iterable[int]) -> set[Path]:
    """The segments of shared memory that some processes map and that have a name still."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
                path = line[line.find("/") :] if "/" in line else ""
                if path.startswith(f"{FOLDER}/") and not path.endswith(" (deleted)"):
                    found.add(Path(path))
    return found


def remove(paths: Iterable[Path], since: float) -> None:
    """Remove segments of this user that were made since then, and that nobody maps any more.

    Args:
        paths: Of what processes have mapped that have ended; they may have removed some themselves.
        since: Seconds since the epoch: what is older was not theirs.
    """
    own = {path for path in paths if _is_own(path, since)}
    if own:
        own -= segments(int(name) for name in os.listdir("/proc") if name.isdecimal())
    for path in own:
        path.unlink(missing_ok=True)


def _is_own(path: Path, since: float) -> bool:
    try:
        known = path.stat()
    except OSError:
        return False
    return known.st_uid == os.getuid() and known.st_ctime >= since
