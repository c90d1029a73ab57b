"""The meter charges a command for all it starts and leaves no process of it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench.peers.meter import Memory, Metered, metered
from tests.helpers.source import ROOT

SPENT_S = 0.3
BURN = f"import time\nwhile time.process_time() < {SPENT_S}: pass"
MB = 1_000_000


def metering(folder: Path, code: str) -> tuple[Metered, str]:
    return metered([sys.executable, "-c", code], folder=folder, env=os.environ, timeout_s=60.0)


def test_a_process_whose_parent_has_gone_is_charged_too(tmp_path: Path) -> None:
    orphan = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURN!r}])"
    cost, _ = metering(tmp_path, orphan)
    assert cost.cpu_s >= SPENT_S
    assert cost.survivors == 0


def test_memory_is_that_of_the_largest_process_and_of_all_together() -> None:
    hold = f"import sys; held = bytearray({60 * MB}); print('held', flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    holders = [subprocess.Popen([sys.executable, "-c", hold], **pipes) for _ in range(2)]
    memory = Memory()
    try:
        for holder in holders:
            assert holder.stdout.readline() == "held\n"
        memory.read()
    finally:
        for holder in holders:
            holder.communicate()
    assert 60 * MB < memory.largest < 120 * MB
    assert memory.sum > 120 * MB
    assert memory.processes >= 2


def test_process_that_outlives_the_command_is_ended_and_counted(tmp_path: Path) -> None:
    stays = "import signal, os; print(os.getpid(), flush=True); signal.pause()"
    code = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {stays!r}], stdout=subprocess.PIPE, "
        "text=True)\n"
        "print(child.stdout.readline())\n"
    )
    cost, said = metering(tmp_path, code)
    assert cost.survivors == 1
    assert not psutil.pid_exists(int(said))


def test_a_failed_command_tells_its_code_and_what_it_said(tmp_path: Path) -> None:
    cost, said = metering(
        tmp_path, "import sys; print('on one', flush=True); sys.exit('and the other')"
    )
    assert cost.code == 1
    assert said.splitlines() == ["on one", "and the other"]


def test_stopped_meter_ends_all_its_child_processes(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, signal\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "print(child.pid, flush=True)\n"
        "signal.pause()\n"
    )
    command = [
        sys.executable,
        "-m",
        "bench.peers.meter",
        str(tmp_path / "told"),
        str(tmp_path),
        sys.executable,
        "-c",
        code,
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as meter:
        assert meter.stdout is not None
        child = int(meter.stdout.readline())
        meter.terminate()
        meter.wait(60.0)
    assert not psutil.pid_exists(child)
    assert Metered(**json.loads((tmp_path / "told").read_text())).code == -signal.SIGTERM


def test_command_over_its_time_limit_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        metered(
            [sys.executable, "-c", "import signal; signal.pause()"],
            folder=tmp_path,
            env=os.environ,
            timeout_s=0.0,
        )
    assert all(
        "signal.pause" not in " ".join(each.cmdline())
        for each in psutil.Process().children(recursive=True)
    )
