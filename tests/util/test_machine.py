"""The machine: time that CPU limits and the hypervisor took from this process."""

import os

import pytest

from loadgen.metrics.client_cpu_usage import UsageSampler
from loadgen.util import machine
from loadgen.util.machine import CpuTimes, stolen_share, throttled_s


@pytest.fixture
def system(tmp_path):
    """Writes files as a system would show them; returns its root."""

    def put(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return tmp_path

    return put


def test_throttling_of_the_second_version_is_in_microseconds(system):
    system("proc/self/cgroup", "0::/a.slice/b\n")
    root = system(
        "sys/fs/cgroup/a.slice/b/cpu.stat",
        "usage_usec 9000000\nnr_throttled 3\nthrottled_usec 1500000\n",
    )
    assert throttled_s(root) == 1.5


def test_throttling_of_the_first_version_is_in_nanoseconds(system):
    system("proc/self/cgroup", "9:name=systemd:/\n4:memory:/a\n2:cpu,cpuacct:/a\n")
    root = system(
        "sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 2500000000\n"
    )
    assert throttled_s(root) == 2.5


def test_a_limit_above_the_process_counts_too(system):
    system("proc/self/cgroup", "0::/a/b\n")
    system("sys/fs/cgroup/a/b/cpu.stat", "throttled_usec 1000000\n")
    root = system("sys/fs/cgroup/a/cpu.stat", "throttled_usec 2000000\n")
    assert throttled_s(root) == 3.0


def test_control_groups_in_a_container_begin_at_its_own(system):
    system("proc/self/cgroup", "0::/../../pod\n")
    root = system("sys/fs/cgroup/cpu.stat", "throttled_usec 4000000\n")
    assert throttled_s(root) == 4.0


@pytest.mark.parametrize("groups", [None, "", "0::/\n", "4:memory:/a\n"])
def test_throttled_time_is_zero_without_a_source(system, tmp_path, groups):
    if groups is not None:
        system("proc/self/cgroup", groups)
    assert throttled_s(tmp_path) == 0


def test_this_machine_can_be_asked():
    assert CpuTimes.now().throttled_s >= 0


def test_stolen_time_is_a_share_of_that_of_all_cores(monkeypatch):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    before, after = CpuTimes(100, 0, 1, 0), CpuTimes(110, 0, 3, 0)
    assert stolen_share(before, after) == 0.05
    assert stolen_share(before, before) == 0


def test_max_connections_by_ports_and_by_files(monkeypatch):
    monkeypatch.setattr(machine, "max_connections_by_ports", lambda: 100)
    monkeypatch.setattr(
        machine.resource, "getrlimit", lambda what: (250 + machine.SPARE_FILES, 10**6)
    )
    assert [machine.max_connections(pairs) for pairs in (1, 2, 3)] == [100, 200, 250]


def test_engines_run_only_where_each_of_them_does():
    gone = 2**22 + 1  # above the highest number that a process can have
    assert [
        UsageSampler(pids).so_far().engine_runs
        for pids in ((), (os.getpid(),), (os.getpid(), gone))
    ] == [None, True, False]
    assert UsageSampler(()).so_far().engine_cpu_s is None


STAT = "cpu  {user} 0 {system} 5000 0 {irq} {softirq} {steal} 0 0\ncpu0 1 2 3\nintr 99\n"


def reading(at_s, own_s=0.0, **ticks):
    """The CPU times at a moment, of a text as of /proc/stat; ticks are hundredths of a second."""
    fields = {"user": 0, "system": 0, "irq": 0, "softirq": 0, "steal": 0} | ticks
    return CpuTimes.of(STAT.format(**fields), at_s, own_s)


def test_cores_of_others_are_what_neither_the_run_nor_interrupts_used():
    before = reading(0)
    after = reading(10, 2.0, user=2000, system=400, irq=50, softirq=150, steal=46)
    assert after.used_s == 26
    # 24 s of programs: 2 s measured, 6 s served
    assert machine.others_cores(before, after, 6.0) == pytest.approx(1.6)
    assert after.stolen_s == pytest.approx(0.46)
    assert machine.others_cores(before, after, 30.0) == 0


@pytest.mark.parametrize("text", ["", "cpu  1 2 3\n", "cpu  a b c d e f g h\n"])
def test_cpu_times_of_another_text_are_zero(text):
    assert CpuTimes.of(text, 1.0, 0.5) == CpuTimes(1.0, 0.0, 0.0, 0.5)


@pytest.mark.parametrize(
    ("others", "stolen", "cores", "expected"),
    [
        (0.25, 0.02, 2, ""),
        (1.2, 0.0, 128, ""),
        (1.6, 0.0, 2, "other processes used 1.6 of 2 cores"),
        (
            0.26,
            0.046,
            2,
            "other processes used 0.3 of 2 cores, the hypervisor took 4.6% of the time",
        ),
    ],
)
def test_what_others_took_is_named_beyond_its_limits(others, stolen, cores, expected):
    assert machine.taken_text(others, stolen, cores) == expected
