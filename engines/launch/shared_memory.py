"""Shared memory: finding and removing the segments of a server's processes, which can outlive these processes."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from loadgen.engines.launch.processes import process_ids

FOLDER = Path("/dev/shm")


def segments(pids: Iterable[int]) -> set[Path]:
    """Return the shared-memory files that processes map and that are not deleted."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
                path = line[line.find("/") :] if "/" in line else ""
                if path.startswith(f"{FOLDER}/") and not path.endswith(" (deleted)"):
                    found.add(Path(path))
    return found


def remove(paths: Iterable[Path], since: float) -> None:
    """Remove segments of this user that were created after `since` and that no process maps.

    Args:
        paths: Segments that the ended processes had mapped; some may be removed already.
        since: Unix time, s; older segments belong to others.
    """
    own = {path for path in paths if _is_own(path, since)}
    if own:
        own -= segments(process_ids())
    for path in own:
        path.unlink(missing_ok=True)


def _is_own(path: Path, since: float) -> bool:
    try:
        known = path.stat()
    except OSError:
        return False
    return known.st_uid == os.getuid() and known.st_ctime >= since
