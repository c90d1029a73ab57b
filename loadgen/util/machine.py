"""The host: CPU, limits on files and ports, and the CPU time that other processes used during a
measurement.
"""

import math
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from loadgen.util.number_format import percent

SPARE_FILES = 64  # file descriptors kept free for everything except connections
# Share of the time of all cores that a hypervisor may take. The loop runs on one core, which may
# have lost all of it.
MAX_STOLEN_SHARE = 0.02
DISTURBING_CORES = 0.1  # used by other processes; below that it is the system itself
DISTURBING_STOLEN_CORES = 0.02  # taken by the hypervisor
# What others may use beside a server on this machine: so many cores, or of a large machine this
# share of its cores.
MAX_OTHERS_CORES, MAX_OTHERS_SHARE = 0.25, 0.01
TICKS = os.sysconf("SC_CLK_TCK")
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024  # the unit of `ru_maxrss`
MAX_FILES_OF_MACOS = 10_240  # OPEN_MAX: macOS refuses more, also below its hard limit
# Sets the threads of NumPy's linear algebra. More than one would spin for 0.1 s at import.
BLAS_THREADS = "OPENBLAS_NUM_THREADS"


class CpuTimes(Struct, frozen=True):
    """CPU time since the machine started, in seconds summed over all cores.

    Attributes:
        at_s: When it was read, s of CLOCK_MONOTONIC.
        used_s: By all processes, and in interrupts.
        stolen_s: By the hypervisor.
        own_s: By this process.
        throttled_s: In which a CPU limit kept our control groups from running.
        interrupts_s: In interrupts, which are no process's: on loopback they carry the load.
    """

    at_s: float
    used_s: float
    stolen_s: float
    own_s: float
    throttled_s: float = 0.0
    interrupts_s: float = 0.0

    @classmethod
    def now(cls) -> "CpuTimes":
        """Read the CPU times; zeros where the system does not show them."""
        times = cls.of(read_system_file("/proc/stat"), time.monotonic(), time.process_time())
        return structs.replace(times, throttled_s=throttled_s())

    @classmethod
    def of(cls, stat: str, at_s: float, own_s: float) -> "CpuTimes":
        """Return the CPU times that /proc/stat shows.

        Args:
            stat: The text of /proc/stat; zeros where it is another.
            at_s: When it was read, s of CLOCK_MONOTONIC.
            own_s: CPU time of this process, s.
        """
        used = interrupts = stolen = 0.0
        try:
            fields = [int(field) / TICKS for field in stat.split("\n", 1)[0].split()[1:]]
            user, nice, system, _, _, irq, softirq, stolen, *_ = fields
            interrupts = irq + softirq
            used = user + nice + system + interrupts
        except ValueError:
            pass
        return cls(at_s, used, stolen, own_s, interrupts_s=interrupts)


def stolen_share(before: CpuTimes, after: CpuTimes) -> float:
    """Return the share of the time of all cores that the hypervisor took between two readings."""
    wall_s = after.at_s - before.at_s
    return (
        (after.stolen_s - before.stolen_s) / (wall_s * (os.cpu_count() or 1)) if wall_s > 0 else 0.0
    )


def idle_share(before: CpuTimes, after: CpuTimes) -> float:
    """Return the share of the time of all cores in which no process ran between two readings."""
    wall_s, used_s = after.at_s - before.at_s, after.used_s - before.used_s
    taken = used_s / (wall_s * (os.cpu_count() or 1)) if wall_s > 0 else 0.0
    return max(0.0, 1.0 - taken - stolen_share(before, after))


def throttled_s(root: Path = Path("/")) -> float:
    """Return the seconds in which CPU limits kept this process's control groups (v1 or v2) from
    running.

    Each level above the process may have a limit, so all visible levels are summed; 0 where none is
    visible.
    """
    seconds = 0.0
    for level in control_groups("cpu", root):
        stat = dict(row.split() for row in read_system_file(level / "cpu.stat").splitlines())
        seconds += (
            int(stat.get("throttled_usec", 0)) / 1e6 + int(stat.get("throttled_time", 0)) / 1e9
        )
    return seconds


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[Path]:
    """Yield the folders of this process's control groups (v1 or v2) with a controller, the
    outermost first.

    In a container the container's own group is the outermost one that is visible.
    """
    for line in read_system_file(root / "proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number != "0" and controller not in controllers.split(","):
            continue
        folder = root / "sys/fs/cgroup" / ("" if number == "0" else controller)
        levels = [name for name in path.split("/") if name not in ("", "..")]
        for depth in range(len(levels) + 1):
            yield folder.joinpath(*levels[:depth])


def process_cpu_s(pid: int | None, *, waited: bool = False) -> float:
    """Return the CPU time of a process in seconds; 0 if the process is gone or unknown.

    Args:
        pid: The process id.
        waited: Whether to add the time of its children that have ended and that it has waited for.
    """
    fields = _stat(pid)
    return sum(map(int, fields[11 : 15 if waited else 13])) / TICKS


def is_running(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in ("Z", "X")


def _stat(pid: int | None) -> list[str]:
    """Read the fields of /proc/PID/stat after the command name, the state first; none if the
    process is gone.
    """
    return read_system_file(f"/proc/{pid}/stat").rpartition(")")[2].split() if pid else []


def peak_memory_bytes() -> int:
    """Return the peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_BYTES


def others_cores(before: CpuTimes, after: CpuTimes, run_s: float = 0.0) -> float:
    """Return how many cores processes outside the run have used between two readings.

    Args:
        before, after: The readings, by the measuring process.
        run_s: CPU time of the other processes of the run: its engine, further workers.
    """
    wall_s = after.at_s - before.at_s
    if wall_s <= 0:
        return 0.0
    used_s = after.used_s - before.used_s - (after.interrupts_s - before.interrupts_s)
    return max(0.0, used_s - (after.own_s - before.own_s) - run_s) / wall_s


def max_others_cores(cores: int) -> float:
    """Return how many cores others may use beside a server on a machine of so many cores."""
    return max(MAX_OTHERS_CORES, MAX_OTHERS_SHARE * cores)


def taken_text(others_cores: float, stolen_share: float, cores: int) -> str:
    """Describe what others took from a server on this machine, where it is beyond the limits.

    Args:
        others_cores: Cores that other processes used, as `others_cores` returns.
        stolen_share: Share of all cores' time that the hypervisor took, as `stolen_share` returns.
        cores: Cores of the machine.

    Returns:
        A text for people; empty within `max_others_cores` and MAX_STOLEN_SHARE.
    """
    parts = []
    if others_cores > max_others_cores(cores):
        parts.append(f"other processes used {others_cores:.1f} of {cores} cores")
    if stolen_share > MAX_STOLEN_SHARE:
        parts.append(f"the hypervisor took {percent(stolen_share, 1)} of the time")
    return ", ".join(parts)


def disturbance(before: CpuTimes, after: CpuTimes, run_s: float) -> str:
    """Describe CPU use by others between two readings, from DISTURBING_CORES and
    DISTURBING_STOLEN_CORES on.

    Args:
        before, after: The readings, by the measuring process.
        run_s: CPU time of the other processes of the run: its engine, further workers.

    Returns:
        A text for people; empty where nothing disturbed the run.
    """
    wall_s = after.at_s - before.at_s
    if wall_s <= 0:
        return ""
    others = others_cores(before, after, run_s)
    stolen = (after.stolen_s - before.stolen_s) / wall_s
    parts = []
    if others >= DISTURBING_CORES:
        parts.append(f"other processes used {others:.1f} of {os.cpu_count()} cores")
    if stolen >= DISTURBING_STOLEN_CORES:
        parts.append(f"the hypervisor took {stolen:.2f} cores")
    return ", ".join(parts)


def describe() -> dict[str, Any]:
    """Return facts and limits of the machine, as JSON."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "system": _system(),
        "python": sys.version.split()[0],
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "open_files_limit": [soft, hard],
        "local_ports": list(local_ports() or ()),
        "somaxconn": int(read_system_file("/proc/sys/net/core/somaxconn") or 0) or None,
        "clock_source": read_system_file(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        ).strip()
        or None,
    }


def usable_cores() -> int:
    """Return on how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def raise_open_files_limit() -> None:
    """Raise the soft limit of open files to the hard limit. Only for processes of our own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = min(hard, MAX_FILES_OF_MACOS) if sys.platform == "darwin" else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def max_connections(pairs: int = 1, processes: int = 1) -> int:
    """Return how many connections this process may have, limited by file descriptors and by local
    ports.

    Args:
        pairs: Pairs of a local address and a server address. Each pair has the range of local ports
            for itself.
        processes: Processes that share the ports equally.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = math.inf if soft == resource.RLIM_INFINITY else soft
    return int(max(0, min(files - SPARE_FILES, pairs * max_connections_by_ports() // processes)))


def max_connections_by_ports(root: Path = Path("/")) -> int:
    """Return how many connections one pair of addresses may have by the range of local ports, a
    tenth kept free.
    """
    first, last = local_ports(root) or (0, (1 << 16) - 1)
    return (last - first + 1) * 9 // 10


def local_ports(root: Path = Path("/")) -> tuple[int, int] | None:
    """Return the first and the last local port of connections; None where the system does not
    show them.
    """
    ports = read_system_file(root / "proc/sys/net/ipv4/ip_local_port_range").split()
    return (int(ports[0]), int(ports[1])) if len(ports) == 2 else None


def _system() -> str:
    """Return what `platform.platform` does; on Linux without the process that it starts."""
    if sys.platform != "linux":
        return platform.platform()
    libc = (os.confstr("CS_GNU_LIBC_VERSION") or "libc").replace(" ", "")
    system = os.uname()
    return f"{system.sysname}-{system.release}-{system.machine}-with-{libc}"


@cache
def _cpu_model() -> str | None:
    """Return the name of the CPU; None if the system does not show it."""
    for line in read_system_file("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or None


def read_system_file(path: str | Path) -> str:
    """Read a file of /proc or /sys; empty where it does not exist."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def program_output(
    name: str, *arguments: str, timeout_s: float, may_fail: bool = False
) -> str | None:
    """Run a program and return what it prints, standard error behind standard output.

    Args:
        name: The program; looked up in PATH.
        arguments: Its arguments.
        timeout_s: How long it may take, s.
        may_fail: Whether an exit status other than 0 counts, too.

    Returns:
        Its output; None if the program is missing, fails, or does not end in time.
    """
    path = shutil.which(name)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (
        (done.stdout + done.stderr).decode(errors="replace")
        if may_fail or done.returncode == 0
        else None
    )
