"""The limits of this machine, and the load that it can generate."""

import os
import time
from pathlib import Path

from loadgen.cli.doctor import hardware, network, software
from loadgen.cli.doctor.limit import Limit, State
from loadgen.util.machine import CpuTimes

__all__ = ["Limit", "State", "examine"]

SAMPLE_S = 0.5  # how long the CPU use of other processes is measured


def examine(root: Path = Path("/")) -> list[Limit]:
    """Return all limits of the machine, group by group; takes SAMPLE_S seconds.

    Args:
        root: The root of the file system that is read: proc, sys.
    """
    before = CpuTimes.now()
    time.sleep(SAMPLE_S)
    after = CpuTimes.now()
    return [
        *network.limits(root),
        *hardware.limits(root, before, after),
        *software.limits(root, os.environ),
    ]
