"""Disturbance by others: its limits, and the wait for a quiet machine."""

import os
import subprocess
import sys

import pytest

from loadgen.lab.study.execute import disturbance
from loadgen.lab.study.execute.disturbance import QuietWait, Reading
from loadgen.lab.study.execute.trial import Disturbance
from loadgen.metrics.progress import Progress
from loadgen.util.machine import CpuTimes


@pytest.mark.parametrize(
    ("found", "disturbed"),
    [
        (Disturbance(others_cores=0.25, stolen_share=0.02, client_error=0.01), False),
        (Disturbance(others_cores=0.26), True),
        (Disturbance(others_cores=1.2, cores=128), False),
        (Disturbance(others_cores=1.3, cores=128), True),
        (Disturbance(stolen_share=0.021), True),
        (Disturbance(client_error=0.011), True),
    ],
)
def test_limits(found: Disturbance, disturbed: bool) -> None:
    assert found.disturbed is disturbed


def test_text_names_what_is_beyond_its_limit() -> None:
    found = Disturbance(others_cores=1.2, stolen_share=0.01, cores=2)
    assert str(found) == "other processes used 1.2 of 2 cores"


def test_stolen_time_is_lost_on_all_cores() -> None:
    assert Disturbance(others_cores=0.5, stolen_share=0.1, cores=4).lost_cores == pytest.approx(0.9)


class Machine:
    """A machine whose time passes when it is slept: others use so many cores from one second to
    the next.
    """

    def __init__(self, *others: float) -> None:
        self.now_s, self._others = 100.0, others

    def read(self) -> Reading:
        seconds = self.now_s - 100.0
        used = sum(
            share * min(1.0, max(0.0, seconds - at)) for at, share in enumerate(self._others)
        )
        # 7 cores are our own
        return Reading(CpuTimes(self.now_s, used + 7.0 * seconds, 0.0, 0.0), 7.0 * seconds)

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds


async def waited(
    machine: Machine, wait: QuietWait, monkeypatch: pytest.MonkeyPatch
) -> tuple[bool, float, list[str]]:
    """Whether the machine is quiet, how long that took, and what was told."""
    told: list[Progress] = []
    monkeypatch.setattr(disturbance.asyncio, "sleep", machine.sleep)
    began_s = machine.now_s
    quiet = await wait.wait(told.append)
    return quiet, machine.now_s - began_s, [progress.note for progress in told]


async def test_quiet_machine_is_watched_for_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    assert await waited(machine, QuietWait(30.0, machine.read), monkeypatch) == (True, 2.0, [])


async def test_machine_that_was_quiet_during_the_run_before_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    wait = QuietWait(30.0, machine.read)
    wait.note()
    machine.now_s += 3.0
    assert await waited(machine, wait, monkeypatch) == (True, 0.0, [])


async def test_busy_machine_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(1.0, 1.0, 1.0)
    quiet, seconds, told = await waited(machine, QuietWait(30.0, machine.read), monkeypatch)
    assert quiet
    assert 4.0 <= seconds <= 6.0
    assert told[0] == f"other processes used 1.0 of {os.cpu_count()} cores"


async def test_wait_is_bounded_and_shorter_after_each_wait_in_vain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(*[1.0] * 100)
    wait = QuietWait(10.0, machine.read)
    found = [await waited(machine, wait, monkeypatch) for _ in range(4)]
    assert [(quiet, seconds) for quiet, seconds, _ in found] == [
        (False, 10.0),
        (False, 5.0),
        (False, 2.5),
        (False, 2.0),
    ]


async def test_study_that_does_not_wait_knows_no_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    assert await waited(machine, QuietWait(0.0, machine.read), monkeypatch) == (False, 0.0, [])


@pytest.mark.integration
def test_processes_of_our_own_are_no_others() -> None:
    before = Reading.now()
    spin = "import time\nwhile time.process_time() < 0.4: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    after = Reading.now()
    assert after.family_s - before.family_s >= 0.35  # in ticks
