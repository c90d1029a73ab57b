"""Memory: what is left of it."""

import re
from collections.abc import Iterator
from pathlib import Path

from loadgen.cli.doctor.limit import Limit, enough, unknown
from loadgen.util import machine

ENOUGH_BYTES = 1 << 30
UNBOUNDED = 1 << 60  # the first version of control groups writes such numbers where there is no limit


def limits(root: Path) -> list[Limit]:
    """The one of memory, read below `root`."""
    return [memory(root)]


def memory(root: Path) -> Limit:
    """What the machine has available, and what the container leaves of it."""
    name = "memory"
    bounds = "a run needs it for tokenizers and for its answers, not for prompts"
    told = re.search(r"^MemAvailable:\s*(\d+) kB", machine.read_system_file(root / "proc/meminfo"), re.MULTILINE)
    if not told:
        return unknown(name, bounds)
    available, bounded = int(told[1]) << 10, min(_left(root), default=None)
    value = f"{_gib(available)} available" + (
        f", the container's limit leaves {_gib(bounded)}" if bounded is not None else ", no limit of a container"
    )
    least = available if bounded is None else min(available, bounded)
    remedy = "raise --memory (docker) or resources.limits.memory (Kubernetes), or stop what else runs here"
    return Limit(name, enough(least >= ENOUGH_BYTES), value, bounds, remedy)


def _left(root: Path) -> Iterator[int]:
    """What each level of the control groups leaves, where it bounds anything; caches count as used."""
    for level in machine.control_groups("memory", root):
        for most, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            texts = [machine.read_system_file(level / name).strip() for name in (most, used)]
            if all(text.isdecimal() for text in texts) and int(texts[0]) < UNBOUNDED:
                yield max(0, int(texts[0]) - int(texts[1]))


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
