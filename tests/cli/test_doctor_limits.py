"""The doctor's limits: each state of each limit, with its bound and remedy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.cli import doctor
from loadgen.cli.commands import doctor as doctor_command
from loadgen.cli.doctor import State, hardware, network, software
from loadgen.cli.doctor.limit import Limit, judged
from loadgen.document import terminal_writer
from loadgen.util import machine
from loadgen.util.machine import CpuTimes
from tests.helpers.source import compiled

OK, WARN, UNKNOWN = State.OK, State.WARN, State.UNKNOWN
V2, V1 = "0::/pod\n", "4:memory:/pod\n2:cpu,cpuacct:/pod\n"
POD, V1_CPU, V1_MEMORY = "sys/fs/cgroup/pod", "sys/fs/cgroup/cpu/pod", "sys/fs/cgroup/memory/pod"
CLOCK = "sys/devices/system/clocksource/clocksource0"
CPU = "sys/devices/system/cpu"
LIMITS = (
    f"{'Limit':<26}{'Soft Limit':<21}{'Hard Limit':<21}Units\n"
    f"{'Max open files':<26}{{:<21}}{{:<21}}files\n"
)
SOCKETS = "  sl  local_address rem_address   st\n   0: {} 00000000:0000 {}\n"

Files = dict[str, str]


@pytest.fixture
def system(tmp_path: Path) -> Callable[[Files], Path]:
    """Writes files as a system would show them; returns its root."""

    def put(files: Files) -> Path:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path

    return put


@pytest.mark.parametrize(
    ("read", "files", "state", "value", "bounds"),
    [
        (
            network.files,
            {"proc/self/limits": LIMITS.format(1024, 524288)},
            OK,
            "raised to 524,288",
            "524,224 conn",
        ),
        (
            network.files,
            {"proc/self/limits": LIMITS.format(1024, 1024)},
            WARN,
            "1,024",
            "at most 960 connections",
        ),
        (
            network.files,
            {"proc/self/limits": LIMITS.format(10063, 10063)},
            WARN,
            "10,063",
            "at most 9,999 conn",
        ),
        (
            network.files,
            {"proc/self/limits": LIMITS.format(10064, 10064)},
            OK,
            "10,064",
            "at most 10,000 conn",
        ),
        (
            network.files,
            {"proc/self/limits": LIMITS.format("unlimited", "unlimited")},
            OK,
            "unlimited",
            "any numb",
        ),
        (network.files, {}, UNKNOWN, "not available", "connections"),
        (
            network.ports,
            {"proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n"},
            OK,
            "32768 to 60999",
            "25,408",
        ),
        (
            network.ports,
            {"proc/sys/net/ipv4/ip_local_port_range": "40000\t49999\n"},
            WARN,
            "40000 to 49999",
            "9,000",
        ),
        (network.ports, {}, UNKNOWN, "not available", "one server"),
        (
            network.time_wait,
            {"proc/sys/net/ipv4/tcp_tw_reuse": "0\n"},
            WARN,
            "not reused",
            "new ones per second",
        ),
        (
            network.time_wait,
            {"proc/sys/net/ipv4/tcp_tw_reuse": "1\n"},
            OK,
            "reused",
            "do not block their ports",
        ),
        (
            network.time_wait,
            {"proc/sys/net/ipv4/tcp_tw_reuse": "2\n"},
            OK,
            "only on loopback",
            "new ones per second",
        ),
        (network.time_wait, {}, UNKNOWN, "not available", ""),
        (
            network.accept_queue,
            {"proc/sys/net/core/somaxconn": "4096\n"},
            OK,
            "4,096",
            "server on this machine",
        ),
        (
            network.accept_queue,
            {"proc/sys/net/core/somaxconn": "128\n"},
            WARN,
            "128",
            "server on this machine",
        ),
        (network.accept_queue, {}, UNKNOWN, "not available", "server on this machine"),
        (
            network.syn_backlog,
            {"proc/sys/net/ipv4/tcp_max_syn_backlog": "2048\n"},
            OK,
            "2,048",
            "on this machine",
        ),
        (
            network.syn_backlog,
            {"proc/sys/net/ipv4/tcp_max_syn_backlog": "256\n"},
            WARN,
            "256",
            "on this machine",
        ),
        (network.syn_backlog, {}, UNKNOWN, "not available", "server on this machine"),
        (
            hardware.cores,
            {"proc/self/status": "Cpus_allowed_list:\t0-2,7\n", f"{CPU}/online": "0-7\n"},
            OK,
            "4 of 8",
            "and more for a server",
        ),
        (
            hardware.cores,
            {"proc/self/status": "Cpus_allowed_list:\t3\n", f"{CPU}/online": "0-7\n"},
            WARN,
            "1 of 8",
            "up to one core",
        ),
        (hardware.cores, {}, UNKNOWN, "not available", ""),
        (
            hardware.governor,
            {f"{CPU}/cpu{i}/cpufreq/scaling_governor": "performance\n" for i in (0, 1)},
            OK,
            "perf",
            "",
        ),
        (
            hardware.governor,
            {
                f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
                f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave\n",
            },
            WARN,
            "performance, powersave",
            "low frequency",
        ),
        (hardware.governor, {}, UNKNOWN, "not available", "the host decides"),
        (
            hardware.quota,
            {"proc/self/cgroup": V2, f"{POD}/cpu.max": "max 100000\n"},
            OK,
            "none",
            "all its cores",
        ),
        (
            hardware.quota,
            {"proc/self/cgroup": V2, f"{POD}/cpu.max": "150000 100000\n"},
            WARN,
            "1.5 cores",
            "paused",
        ),
        (
            hardware.quota,
            {"proc/self/cgroup": V2, f"{POD}/cpu.max": "400000 100000\n"},
            OK,
            "4 cores",
            "enough",
        ),
        (
            hardware.quota,
            {
                "proc/self/cgroup": V1,
                f"{V1_CPU}/cpu.cfs_quota_us": "50000\n",
                f"{V1_CPU}/cpu.cfs_period_us": "100000\n",
            },
            WARN,
            "0.5 cores",
            "paused",
        ),
        (
            hardware.quota,
            {
                "proc/self/cgroup": V1,
                f"{V1_CPU}/cpu.cfs_quota_us": "-1\n",
                f"{V1_CPU}/cpu.cfs_period_us": "100000\n",
            },
            OK,
            "none",
            "",
        ),
        (
            hardware.quota,  # the least of all levels
            {
                "proc/self/cgroup": V2,
                f"{POD}/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/cpu.max": "100000 100000\n",
            },
            WARN,
            "1 cores",
            "",
        ),
        (hardware.quota, {}, UNKNOWN, "not available", ""),
        (
            hardware.throttled,
            {"proc/self/cgroup": V2, f"{POD}/cpu.stat": "throttled_usec 0\n"},
            OK,
            "0.0 s",
            "no process",
        ),
        (
            hardware.throttled,
            {"proc/self/cgroup": V2, f"{POD}/cpu.stat": "throttled_usec 1500000\n"},
            WARN,
            "1.5 s",
            "late",
        ),
        (
            hardware.throttled,
            {"proc/self/cgroup": V1, f"{V1_CPU}/cpu.stat": "throttled_time 2500000000\n"},
            WARN,
            "2.5 s",
            "late",
        ),
        (
            hardware.throttled,
            {"proc/self/cgroup": V2, f"{POD}/cpu.stat": "usage_usec 5\n"},
            UNKNOWN,
            "not available",
            "",
        ),
        (hardware.throttled, {}, UNKNOWN, "not available", ""),
        (
            hardware.clock,
            {f"{CLOCK}/current_clocksource": "tsc\n"},
            OK,
            "tsc",
            "without a system call",
        ),
        (
            hardware.clock,
            {f"{CLOCK}/current_clocksource": "kvm-clock\n"},
            OK,
            "kvm-clock",
            "without a system call",
        ),
        (
            hardware.clock,
            {
                f"{CLOCK}/current_clocksource": "hpet\n",
                f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm\n",
            },
            WARN,
            "hpet",
            "by a system call",
        ),
        (hardware.clock, {}, UNKNOWN, "not available", ""),
        (
            hardware.memory,
            {"proc/meminfo": "MemAvailable:   8388608 kB\n"},
            OK,
            "8.0 GiB available, no container limit",
            "",
        ),
        (
            hardware.memory,
            {"proc/meminfo": "MemAvailable:    524288 kB\n"},
            WARN,
            "0.5 GiB available, no container limit",
            "",
        ),
        (
            hardware.memory,
            {
                "proc/meminfo": "MemAvailable:   8388608 kB\n",
                "proc/self/cgroup": V2,
                f"{POD}/memory.max": "1073741824\n",
                f"{POD}/memory.current": "536870912\n",
            },
            WARN,
            "0.5 GiB within the container's limit",
            "",
        ),
        (
            hardware.memory,
            {
                "proc/meminfo": "MemAvailable:   8388608 kB\n",
                "proc/self/cgroup": V1,
                f"{V1_MEMORY}/memory.limit_in_bytes": "9223372036854771712\n",
                f"{V1_MEMORY}/memory.usage_in_bytes": "4096\n",
            },
            OK,
            "no container limit",
            "",
        ),
        (hardware.memory, {}, UNKNOWN, "not available", ""),
        (
            software.mesh,
            {"proc/net/tcp": SOCKETS.format("0100007F:1F90", "0A")},
            OK,
            "none",
            "nothing intercepts",
        ),
        (
            software.mesh,
            {"proc/net/tcp": SOCKETS.format("00000000:3A99", "0A")},
            WARN,
            "Istio's proxy",
            "every latency",
        ),
        (
            software.mesh,
            {"proc/net/tcp6": SOCKETS.format("0" * 32 + ":102C", "0A")},
            WARN,
            "Linkerd",
            "every latency",
        ),
        (
            software.mesh,
            {"proc/net/tcp": SOCKETS.format("0100007F:3A99", "01")},
            OK,
            "none",
            "nothing intercepts",
        ),
        (software.mesh, {}, UNKNOWN, "not available", ""),
    ],
)
def test_a_limit_is_read_as_the_system_shows_it(
    system: Callable[[Files], Path],
    read: Callable[[Path], Limit],
    files: Files,
    state: State,
    value: str,
    bounds: str,
) -> None:
    found = read(system(files))
    assert found.state is state, found
    assert value in found.value
    assert bounds in found.bounds
    assert found.remedy if state is WARN else True


def busy(at_s: float, used_s: float, stolen_s: float = 0.0, own_s: float = 0.0) -> CpuTimes:
    return CpuTimes(at_s, used_s, stolen_s, own_s)


@pytest.mark.parametrize(
    ("after", "state", "value"),
    [
        (busy(11, 500.05, own_s=0.02), OK, "0.0 cores"),
        (busy(11, 501.5, own_s=0.5), WARN, "1.0 cores"),  # what we used ourselves is not theirs
        (busy(11, 0), UNKNOWN, "not available"),
    ],
)
def test_cpu_use_of_others_excludes_our_own(after: CpuTimes, state: State, value: str) -> None:
    found = hardware.others(busy(10, 500), after)
    assert (found.state, found.value) == (state, value)


@pytest.mark.parametrize(
    ("after", "state", "value"),
    [
        (busy(11, 501, 0.04), OK, "1.0%"),
        (busy(11, 501, 0.4), WARN, "10.0%"),
        (busy(11, 0), UNKNOWN, "not available"),
    ],
)
def test_steal_time_is_a_share_of_all_cores(
    monkeypatch: pytest.MonkeyPatch, after: CpuTimes, state: State, value: str
) -> None:
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    found = hardware.steal(busy(10, 500), after)
    assert found.state is state
    assert found.value.startswith(value)


@pytest.mark.parametrize(
    ("environment", "value"),
    [
        ({}, "none in the environment"),
        ({"http_proxy": ""}, "none in the environment"),
        (
            {"HTTP_PROXY": "http://user:secret@proxy:3128", "https_proxy": "x"},
            "HTTP_PROXY, https_proxy set",
        ),
    ],
)
def test_proxies_are_named_and_what_they_hold_is_not(
    environment: dict[str, str], value: str
) -> None:
    found = software.proxies(environment)
    assert (found.state, found.value) == (OK, value)
    assert "secret" not in str(found)


def test_every_compiled_module_is_looked_for() -> None:
    assert sorted(software.COMPILED) == sorted(".".join(parts) for parts in compiled())


def test_a_compiled_module_that_is_missing_is_named() -> None:
    found = software.compiled(("loadgen.core.record", "loadgen.nowhere"))
    assert (found.state, found.value) == (WARN, "missing: loadgen.nowhere")


def test_a_debug_build_is_no_build_to_measure_with(monkeypatch: pytest.MonkeyPatch) -> None:
    from loadgen.core import record

    monkeypatch.setattr(record, "live", lambda: (0, 0))
    assert software.compiled().value == "a debug build"


def test_every_limit_has_a_name_of_its_own_and_low_ones_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "kernel_stamps", lambda: True)
    found = doctor.examine(tmp_path)
    assert len({limit.name for limit in found}) == len(found) == 17
    # Which no folder tells.
    told = {"arrival times", "used by others now", "stolen now", "compiled modules", "proxies"}
    assert {limit.name for limit in found if limit.state is UNKNOWN} == {
        limit.name for limit in found
    } - told


def test_a_value_that_is_high_enough_is_not_shown_with_the_harm_of_a_low_one() -> None:
    good, bad = (
        judged("cores", holds, "2", good="plenty", bad="harm", remedy="buy")
        for holds in (True, False)
    )
    assert (good.state, good.bounds, bad.state, bad.bounds) == (OK, "plenty", WARN, "harm")
    table = doctor_command.limit_table([good, bad], "numpy 2")
    assert terminal_writer.text((table,), 80).splitlines() == [
        "ok    cores     2: plenty",
        "WARN  cores     2: harm",
        "                -> buy",
        "      versions  numpy 2",
    ]


@pytest.mark.parametrize(("stamped", "state"), [(True, OK), (False, WARN)])
def test_arrival_times_are_the_kernels_or_low(
    monkeypatch: pytest.MonkeyPatch, stamped: bool, state: State
) -> None:
    monkeypatch.setattr(network, "kernel_stamps", lambda: stamped)
    assert network.arrival_times().state is state
