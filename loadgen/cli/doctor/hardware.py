"""The processors and the memory: number, other users, limits of the container, frequency, and
the clock source.
"""

from collections.abc import Iterator
from pathlib import Path

from loadgen.cli.doctor.limit import Limit, State, judged, line_of, unknown
from loadgen.util import machine
from loadgen.util.machine import CpuTimes
from loadgen.util.number_format import percent

ENOUGH_BYTES = 1 << 30
UNBOUNDED = 1 << 60  # control groups v1 show no limit as such a number

ENOUGH_CORES = 2  # one for the measuring process, one for all others
# Clock sources that are read without a system call: 20 ns instead of a microsecond or more.
FAST_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
_CLOCK = "sys/devices/system/clocksource/clocksource0"


def limits(root: Path, before: CpuTimes, after: CpuTimes) -> list[Limit]:
    """Return the limits of the processors and of the memory.

    Args:
        root: The root of the file system that is read.
        before, after: Two readings of CPU times, some time apart.
    """
    shared = [cores(root), others(before, after), steal(before, after)]
    return [*shared, governor(root), quota(root), throttled(root), clock(root), memory(root)]


def cores(root: Path) -> Limit:
    """Return the cores on which this process may run."""
    name = "usable cores"
    bad = "a measuring process uses up to one core; a server on this machine needs others"
    allowed = line_of(root / "proc/self/status", r"Cpus_allowed_list:\s*(\S+)")
    if not allowed:
        return unknown(name, bad)
    usable, online = (
        _counted(allowed[1]),
        _counted(machine.read_system_file(root / "sys/devices/system/cpu/online").strip()),
    )
    value = f"{usable} of {online}" if online else str(usable)
    remedy = "use a larger machine, or widen the cpuset of the container (docker run --cpuset-cpus)"
    good = "one for the measuring process, and more for a server on this machine"
    return judged(name, usable >= ENOUGH_CORES, value, good=good, bad=bad, remedy=remedy)


def others(before: CpuTimes, after: CpuTimes) -> Limit:
    """Return the CPU use of other processes."""
    used = machine.others_cores(before, after)
    return judged(
        "used by others now",
        used < machine.DISTURBING_CORES if after.used_s else None,
        f"{used:.1f} cores",
        good="too little to disturb a measuring process",
        bad="other processes take CPU time from the measuring process",
        remedy="stop the other processes; `top` lists them",
    )


def steal(before: CpuTimes, after: CpuTimes) -> Limit:
    """Return the CPU time that the hypervisor steals."""
    share = machine.stolen_share(before, after)
    return judged(
        "stolen now",
        share <= machine.MAX_STOLEN_SHARE if after.used_s else None,
        f"{percent(share, 1)} of all cores' time",
        good="too little to delay time stamps",
        bad="while the hypervisor runs other machines, nothing is sent or stamped",
        remedy="measure from another machine, or from one with dedicated cores",
    )


def governor(root: Path) -> Limit:
    """Return the CPU frequency governor."""
    name, bad = "CPU governor", "a core at a low frequency sends and reads late until it speeds up"
    paths = sorted(root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"))
    names = sorted({name for path in paths if (name := machine.read_system_file(path).strip())})
    if not names:
        return unknown(name, "on a virtual machine the host decides")
    good, remedy = (
        "cores run at their highest frequency",
        "cpupower frequency-set -g performance, as root",
    )
    return judged(
        name, names == ["performance"], ", ".join(names), good=good, bad=bad, remedy=remedy
    )


def quota(root: Path) -> Limit:
    """Return the CPU limit of the container."""
    name = "CPU limit"
    bad = "a process that has used up its share is paused for the rest of each 100 ms"
    if not machine.read_system_file(root / "proc/self/cgroup"):
        return unknown(name, bad)
    quotas: list[float] = []
    for level in machine.control_groups("cpu", root):
        words = machine.read_system_file(level / "cpu.max").split() or [
            machine.read_system_file(level / f"cpu.cfs_{part}_us").strip()
            for part in ("quota", "period")
        ]
        if all(part.isdecimal() for part in words):  # "max", "-1" and "" bound nothing
            most_us, period_us = map(int, words)
            quotas.append(most_us / period_us)
    least = min(quotas, default=None)
    if least is None:
        return Limit(name, State.OK, "none", "this process can use all its cores", "")
    remedy = "raise --cpus (docker), resources.limits.cpu (Kubernetes) or CPUQuota= (systemd)"
    good = "enough for the measuring process and one more"
    return judged(
        name, least >= ENOUGH_CORES, f"{least:g} cores", good=good, bad=bad, remedy=remedy
    )


def throttled(root: Path) -> Limit:
    """Return how long the CPU limit has paused the control groups of this process."""
    name, bad = "throttled so far", "requests that are due during a pause are sent late"
    stats = [
        machine.read_system_file(level / "cpu.stat")
        for level in machine.control_groups("cpu", root)
    ]
    if not any("throttled" in stat for stat in stats):
        return unknown(name, bad)
    seconds = machine.throttled_s(root)
    value, good = f"{seconds:.1f} s since the container began", "no process was paused"
    remedy = "raise the CPU limit of the container, or reduce the load of its other processes"
    return judged(name, seconds == 0, value, good=good, bad=bad, remedy=remedy)


def clock(root: Path) -> Limit:
    """Return the clock source."""
    name, bounds = "clock source", "every time stamp reads it"
    current = machine.read_system_file(root / _CLOCK / "current_clocksource").strip()
    if not current:
        return unknown(name, bounds)
    if current in FAST_CLOCKS:
        return Limit(name, State.OK, current, f"{bounds}, without a system call", "")
    available = machine.read_system_file(root / _CLOCK / "available_clocksource").split()
    better = next((source for source in FAST_CLOCKS if source in available), None)
    remedy = (
        f"echo {better} > /{_CLOCK}/current_clocksource, as root"
        if better
        else "measure from another machine"
    )
    return Limit(name, State.WARN, current, f"{bounds}, by a system call each time", remedy)


def memory(root: Path) -> Limit:
    """Return the memory that the machine and the container have left, read below `root`."""
    name = "memory"
    bad = "a run needs memory for tokenizers and responses; prompts are kept on disk"
    match = line_of(root / "proc/meminfo", r"MemAvailable:\s*(\d+) kB")
    if not match:
        return unknown(name, bad)
    available, bounded = int(match[1]) << 10, min(_free_bytes(root), default=None)
    value = f"{_gib(available)} available" + (
        f", {_gib(bounded)} within the container's limit"
        if bounded is not None
        else ", no container limit"
    )
    least = available if bounded is None else min(available, bounded)
    remedy = (
        "raise --memory (docker) or resources.limits.memory (Kubernetes), or stop other "
        "processes on this machine"
    )
    good = "enough for tokenizers and responses"
    return judged(name, least >= ENOUGH_BYTES, value, good=good, bad=bad, remedy=remedy)


def _free_bytes(root: Path) -> Iterator[int]:
    """Yield the bytes left at each level of control groups that has a limit; caches count as
    used.
    """
    for level in machine.control_groups("memory", root):
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            texts = [machine.read_system_file(level / name).strip() for name in (limit, used)]
            if all(text.isdecimal() for text in texts) and int(texts[0]) < UNBOUNDED:
                yield max(0, int(texts[0]) - int(texts[1]))


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"


def _counted(ranges: str) -> int:
    """Count the numbers in ranges such as "0-3,8"."""
    ends = [part.partition("-") for part in ranges.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)
