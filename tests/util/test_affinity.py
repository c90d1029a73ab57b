"""Processor affinity: the measuring thread on cores of its own, other processes on the rest."""

import os
import subprocess
import sys

import pytest

from loadgen.util.affinity import separate_cores

several = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
GONE = 2**22 + 1  # above the largest number that the kernel gives to a process


@pytest.fixture
def beside():
    """A process with a second thread, which lives until the test ends."""
    program = "import sys, threading; threading.Thread(target=sys.stdin.read).start(); print(flush=True)"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process.pid
        process.stdin.close()


@several
def test_separate_cores_pins_and_restores_affinity(beside):
    before = os.sched_getaffinity(0)
    threads = [int(name) for name in os.listdir(f"/proc/{beside}/task")]
    assert len(threads) > 1
    with separate_cores([beside]):
        ours = os.sched_getaffinity(0)
        assert len(ours) == (len(before) + 1) // 2
        assert [os.sched_getaffinity(thread) for thread in threads] == [before - ours] * len(threads)
    assert [os.sched_getaffinity(thread) for thread in (0, *threads)] == [before] * (1 + len(threads))


@several
@pytest.mark.parametrize("place", [min, max])
def test_the_processor_can_be_chosen(beside, place):
    own = place(os.sched_getaffinity(0))
    with separate_cores([beside], own):
        assert os.sched_getaffinity(0) == {own}
        assert own not in os.sched_getaffinity(beside)


@several
def test_affinity_is_unchanged_with_a_single_processor(beside):
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with separate_cores([beside]):
            assert os.sched_getaffinity(0) == {min(before)}
            assert os.sched_getaffinity(beside) == before
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("pids", [[], [GONE]])
def test_affinity_is_unchanged_without_a_process(pids):
    before = os.sched_getaffinity(0)
    with separate_cores(pids):
        assert os.sched_getaffinity(0) == before
    assert os.sched_getaffinity(0) == before
