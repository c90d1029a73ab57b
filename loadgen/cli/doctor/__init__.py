"""Doctor: what this machine's limits are, what follows from them, and how much load it has made when tried."""

import os
import time
from pathlib import Path

from loadgen.cli.doctor import connections, memory, processors, software
from loadgen.cli.doctor.limit import Limit, State
from loadgen.util.machine import CpuTimes

__all__ = ["Limit", "State", "examine"]

MOMENT_S = 0.5  # for which others are watched


def examine(root: Path = Path("/")) -> list[Limit]:
    """All limits of the machine, group by group; takes a moment.

    Args:
        root: Where the system shows itself.
    """
    before = CpuTimes.now()
    time.sleep(MOMENT_S)
    after = CpuTimes.now()
    return [
        *connections.limits(root),
        *processors.limits(root, before, after),
        *memory.limits(root),
        *software.limits(root, os.environ),
    ]
