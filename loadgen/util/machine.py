"""The machine: what it is, what it allows, and how busy others kept it while we measured."""

import math
import os
import platform
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SPARE_FILES = 64  # for everything that is no connection
# Of all cores' time. The loop uses one of them: others may have borne it.
MOST_STOLEN = 0.02
DISTURBING_CORES = 0.1  # that others use: less is the system's own
DISTURBING_STOLEN_CORES = 0.02  # that the hypervisor takes: all of it may have been the loop's
TICKS = os.sysconf("SC_CLK_TCK")
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024  # in which the system tells memory
MOST_FILES_OF_MACOS = 10_240  # OPEN_MAX: it refuses more, whatever its hard limit says
# How many threads NumPy has for linear algebra; more than one would spin for a tenth of a second as it is imported.
BLAS_THREADS = "OPENBLAS_NUM_THREADS"


@dataclass(frozen=True, slots=True)
class Busy:
    """Processor time spent since the machine started, in seconds over all cores."""

    at_s: float
    used_s: float  # by anybody
    stolen_s: float  # by the hypervisor
    own_s: float  # by this process
    throttled_s: float = 0.0  # for which a CPU limit has kept our control groups from running

    @classmethod
    def now(cls) -> "Busy":
        """Read it; zeros where the system does not tell."""
        used = stolen = 0.0
        try:
            fields = [int(f) / TICKS for f in read("/proc/stat").split("\n", 1)[0].split()[1:]]
            user, nice, system, _, _, irq, softirq, stolen, *_ = fields
            used = user + nice + system + irq + softirq
        except (IndexError, ValueError):
            pass
        return cls(time.monotonic(), used, stolen, time.process_time(), throttled_s())


def stolen_share(before: Busy, after: Busy) -> float:
    """Which share of all cores' time the hypervisor took between two readings."""
    wall_s = after.at_s - before.at_s
    return (after.stolen_s - before.stolen_s) / (wall_s * (os.cpu_count() or 1)) if wall_s > 0 else 0.0


def throttled_s(root: Path = Path("/")) -> float:
    """Seconds for which CPU limits have kept this process's control groups, of either version, from running.

    Limits may stand at every level above the process, so all that can be seen are added up; 0 where none can.
    """
    seconds = 0.0
    for level in control_groups("cpu", root):
        stat = dict(row.split() for row in read(level / "cpu.stat").splitlines())
        seconds += int(stat.get("throttled_usec", 0)) / 1e6 + int(stat.get("throttled_time", 0)) / 1e9
    return seconds


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[Path]:
    """The folders of this process's control groups, of either version, that `controller` governs, the outermost first.

    In a container those above its own are not to be seen, and its own is the outermost.
    """
    for line in read(root / "proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number != "0" and controller not in controllers.split(","):
            continue
        folder = root / "sys/fs/cgroup" / ("" if number == "0" else controller)
        levels = [name for name in path.split("/") if name not in ("", "..")]
        for depth in range(len(levels) + 1):
            yield folder.joinpath(*levels[:depth])


def process_cpu_s(pid: int | None) -> float:
    """Processor time of a process so far, in seconds; 0 if it is gone or unknown."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS if fields else 0.0


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in ("Z", "X")


def _stat(pid: int | None) -> list[str]:
    """The fields of /proc/PID/stat after the command's name, the state first; none if it is gone."""
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split() if pid else []


def peak_memory_bytes() -> int:
    """The most memory this process has had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_BYTES


def others_cores(before: Busy, after: Busy, friends_s: float = 0.0) -> float:
    """How many cores others than this process and its friends have used between two readings."""
    wall_s = after.at_s - before.at_s
    return (after.used_s - before.used_s - (after.own_s - before.own_s) - friends_s) / wall_s if wall_s > 0 else 0.0


def disturbance(before: Busy, after: Busy, friends_s: float) -> str:
    """What else was busy between two readings: others from DISTURBING_CORES on, steal from DISTURBING_STOLEN_CORES on.

    Args:
        before, after: The readings, by the measuring process.
        friends_s: Processor time of the other processes that belong to the run: its engine, further workers.
    """
    wall_s = after.at_s - before.at_s
    if wall_s <= 0:
        return ""
    others = others_cores(before, after, friends_s)
    stolen = (after.stolen_s - before.stolen_s) / wall_s
    parts = []
    if others >= DISTURBING_CORES:
        parts.append(f"other processes used {others:.1f} of {os.cpu_count()} cores")
    if stolen >= DISTURBING_STOLEN_CORES:
        parts.append(f"the hypervisor took {stolen:.2f} cores")
    return ", ".join(parts)


def describe() -> dict[str, Any]:
    """What the machine is and allows, as JSON."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "open_files_limit": [soft, hard],
        "local_ports": list(local_ports() or ()),
        "somaxconn": int(read("/proc/sys/net/core/somaxconn") or 0) or None,
        "clock_source": read("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip() or None,
    }


def usable_cores() -> int:
    """On how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def raise_open_files_limit() -> None:
    """Let this process open as many files as the hard limit allows; for processes of our own only."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(hard, MOST_FILES_OF_MACOS) if sys.platform == "darwin" else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def most_connections(pairs: int = 1, processes: int = 1) -> int:
    """How many connections this process may have: by file descriptors, and by local ports.

    Each of the `pairs` of an address of ours and one of a server has the range of local ports for itself, of which so
    many processes have an equal share each.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = math.inf if soft == resource.RLIM_INFINITY else soft
    return int(max(0, min(files - SPARE_FILES, pairs * most_by_ports() // processes)))


def most_by_ports(root: Path = Path("/")) -> int:
    """How many connections from one address to one other the range of local ports allows, a tenth left to others."""
    first, last = local_ports(root) or (0, (1 << 16) - 1)
    return (last - first + 1) * 9 // 10


def local_ports(root: Path = Path("/")) -> tuple[int, int] | None:
    """The first and the last of the ports that the system gives to connections; None where it does not tell."""
    ports = read(root / "proc/sys/net/ipv4/ip_local_port_range").split()
    return (int(ports[0]), int(ports[1])) if len(ports) == 2 else None


def _cpu_model() -> str | None:
    for line in read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or None


def read(path: str | Path) -> str:
    """The text of a file that the system shows; empty where it does not."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
