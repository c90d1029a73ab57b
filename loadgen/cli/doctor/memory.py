"""The available memory."""

import re
from collections.abc import Iterator
from pathlib import Path

from loadgen.cli.doctor.limit import Limit, judged, unknown
from loadgen.util import machine

ENOUGH_BYTES = 1 << 30
UNBOUNDED = 1 << 60  # control groups v1 show no limit as such a number


def limit(root: Path) -> Limit:
    """Return the memory that the machine and the container have left, read below `root`."""
    name = "memory"
    bad = "a run needs memory for tokenizers and responses; prompts are kept on disk"
    found = re.search(r"^MemAvailable:\s*(\d+) kB", machine.read_system_file(root / "proc/meminfo"), re.MULTILINE)
    if not found:
        return unknown(name, bad)
    available, bounded = int(found[1]) << 10, min(_free_bytes(root), default=None)
    value = f"{_gib(available)} available" + (
        f", {_gib(bounded)} within the container's limit" if bounded is not None else ", no container limit"
    )
    least = available if bounded is None else min(available, bounded)
    remedy = "raise --memory (docker) or resources.limits.memory (Kubernetes), or stop other processes on this machine"
    good = "enough for tokenizers and responses"
    return judged(name, least >= ENOUGH_BYTES, value, good=good, bad=bad, remedy=remedy)


def _free_bytes(root: Path) -> Iterator[int]:
    """Yield the bytes left at each level of control groups that has a limit; caches count as used."""
    for level in machine.control_groups("memory", root):
        for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            texts = [machine.read_system_file(level / name).strip() for name in (limit, used)]
            if all(text.isdecimal() for text in texts) and int(texts[0]) < UNBOUNDED:
                yield max(0, int(texts[0]) - int(texts[1]))


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
