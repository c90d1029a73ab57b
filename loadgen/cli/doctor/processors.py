"""Processors: how many there are, whom they are shared with, how they are held back, and by which clock."""

import re
from collections.abc import Iterator
from pathlib import Path

from loadgen.cli.doctor.limit import Limit, State, enough, unknown
from loadgen.util import machine
from loadgen.util.machine import CpuTimes
from loadgen.util.number_format import percent

ENOUGH_CORES = 2  # one for the process that measures, one for all else
# Clocks that a process reads without a call into the kernel: 20 ns in place of a microsecond or more.
FAST_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
_CLOCK = "sys/devices/system/clocksource/clocksource0"


def limits(root: Path, before: CpuTimes, after: CpuTimes) -> list[Limit]:
    """All of them, read below `root`, and between two readings of a moment's distance."""
    own = cores(root)
    return [own, others(before, after), steal(before, after), governor(root), quota(root), throttled(root), clock(root)]


def cores(root: Path) -> Limit:
    """Those on which this process may run."""
    name = "usable cores"
    bounds = "one process that measures fills one; a server on this machine needs others"
    allowed = re.search(
        r"^Cpus_allowed_list:\s*(\S+)", machine.read_system_file(root / "proc/self/status"), re.MULTILINE
    )
    if not allowed:
        return unknown(name, bounds)
    usable, online = (
        _counted(allowed[1]),
        _counted(machine.read_system_file(root / "sys/devices/system/cpu/online").strip()),
    )
    value = f"{usable} of {online}" if online else str(usable)
    remedy = "use a larger machine, or widen the cpuset of the container (docker run --cpuset-cpus)"
    return Limit(name, enough(usable >= ENOUGH_CORES), value, bounds, remedy)


def others(before: CpuTimes, after: CpuTimes) -> Limit:
    """What other processes use right now."""
    name, bounds = "used by others now", "they take turns with the process that measures"
    if not after.used_s:
        return unknown(name, bounds)
    used = machine.others_cores(before, after)
    state = enough(used < machine.DISTURBING_CORES)
    return Limit(name, state, f"{max(0.0, used):.1f} cores", bounds, "stop what else runs here: `top` names it")


def steal(before: CpuTimes, after: CpuTimes) -> Limit:
    """What the hypervisor takes right now."""
    name, bounds = "stolen now", "the host lets this machine stand still meanwhile, and tokens are stamped late"
    if not after.used_s:
        return unknown(name, bounds)
    share = machine.stolen_share(before, after)
    remedy = "measure from another machine, or from one with cores of its own"
    return Limit(
        name, enough(share <= machine.MAX_STOLEN_SHARE), f"{percent(share, 1)} of all cores' time", bounds, remedy
    )


def governor(root: Path) -> Limit:
    """What decides how fast the cores run."""
    name, bounds = "CPU governor", "a core that has slowed down stamps late until it is fast again"
    paths = sorted(root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"))
    names = sorted({name for path in paths if (name := machine.read_system_file(path).strip())})
    if not names:
        return unknown(name, f"{bounds}; on a virtual machine its host decides")
    remedy = "cpupower frequency-set -g performance, as root"
    return Limit(name, enough(names == ["performance"]), ", ".join(names), bounds, remedy)


def quota(root: Path) -> Limit:
    """The CPU time that the container may use."""
    name = "CPU limit"
    bounds = "a process that has used its share stands still for the rest of each tenth of a second"
    if not machine.read_system_file(root / "proc/self/cgroup"):
        return unknown(name, bounds)
    least = min(_quotas(root), default=None)
    if least is None:
        return Limit(name, State.OK, "none", "this process may use all of its cores", "")
    remedy = "raise --cpus (docker), resources.limits.cpu (Kubernetes) or CPUQuota= (systemd)"
    return Limit(name, enough(least >= ENOUGH_CORES), f"{least:g} cores", bounds, remedy)


def throttled(root: Path) -> Limit:
    """How long that limit has kept this process's control groups from running."""
    name, bounds = "throttled so far", "tokens that come meanwhile are stamped late"
    stats = [machine.read_system_file(level / "cpu.stat") for level in machine.control_groups("cpu", root)]
    if not any("throttled" in stat for stat in stats):
        return unknown(name, bounds)
    seconds = machine.throttled_s(root)
    remedy = "raise the CPU limit of the container, or keep its other processes small"
    return Limit(name, enough(seconds == 0), f"{seconds:.1f} s since the container began", bounds, remedy)


def clock(root: Path) -> Limit:
    """Where the time comes from."""
    name, bounds = "clock source", "every stamp reads it"
    current = machine.read_system_file(root / _CLOCK / "current_clocksource").strip()
    if not current:
        return unknown(name, bounds)
    if current in FAST_CLOCKS:
        return Limit(name, State.OK, current, f"{bounds}, without a call into the kernel", "")
    available = machine.read_system_file(root / _CLOCK / "available_clocksource").split()
    better = next((each for each in FAST_CLOCKS if each in available), None)
    remedy = f"echo {better} > /{_CLOCK}/current_clocksource, as root" if better else "measure from another machine"
    return Limit(name, State.LOW, current, f"{bounds}, by a call into the kernel each time", remedy)


def _counted(ranges: str) -> int:
    """How many numbers there are in "0-3,8"."""
    ends = [part.partition("-") for part in ranges.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def _quotas(root: Path) -> Iterator[float]:
    """Cores' worth of time that each level of the control groups allows, where it bounds it."""
    for level in machine.control_groups("cpu", root):
        told = machine.read_system_file(level / "cpu.max").split() or [
            machine.read_system_file(level / f"cpu.cfs_{part}_us").strip() for part in ("quota", "period")
        ]
        if all(part.isdecimal() for part in told):  # "max", "-1" and "" bound nothing
            most_us, period_us = map(int, told)
            yield most_us / period_us
