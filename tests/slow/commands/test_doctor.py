"""`loadgen doctor`: readable text, JSON, and no process left at any end."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from loadgen import __version__
from loadgen.cli.main import dispatch
from loadgen.util import machine
from tests.helpers.command_line import LOADGEN, environment, hear, loadgen, start


def test_doctor_shows_the_limits_of_this_machine() -> None:
    done = loadgen("doctor", "--no-measure")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    first, last = machine.local_ports() or (0, 0)
    assert f"local ports         {first} to {last}" in done.stdout
    assert f"usable cores        {machine.usable_cores()} of " in done.stdout
    assert f"loadgen {__version__}" in done.stdout
    assert "from one process" not in done.stdout


def test_a_limit_that_is_low_has_the_command_that_raises_it() -> None:
    command = ["sh", "-c", 'ulimit -n 1024 && exec "$0" "$@"', *LOADGEN, "doctor", "--no-measure"]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0].startswith("WARN  open files          1,024: one process can open at most 960")
    assert any(line.strip().startswith("-> ulimit -n 65536, as root") for line in lines[:4])


def test_doctor_json_is_one_object_with_all_findings() -> None:
    found = json.loads(loadgen("doctor", "--json", "--no-measure").stdout)
    assert found.keys() == {"limits", "versions", "measured"}
    assert found["measured"] is None
    assert found["versions"]["loadgen"] == __version__
    assert all(
        limit.keys() == {"name", "state", "value", "bounds", "remedy"} for limit in found["limits"]
    )
    assert {limit["state"] for limit in found["limits"]} <= {"ok", "warn", "unknown"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_however_it_is_ended_its_server_ends_with_it(number: signal.Signals) -> None:
    with start("doctor") as process:
        hear(process, lambda line: "measuring requests" in line)
        deadline = time.monotonic() + 20
        while sockets(process.pid) < 10 and time.monotonic() < deadline:
            time.sleep(0.02)
        servers = children(process.pid)
        os.kill(process.pid, number)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert stderr.splitlines()[-1] == "loadgen doctor: interrupted"
    assert servers
    assert not [pid for pid in servers if machine.is_running(pid)]


def sockets(pid: int) -> int:
    """How many a process has open: some once a run is under way."""
    count = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            count += str(path.readlink()).startswith("socket:")
    return count


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def debug_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that counts its objects."""
    from loadgen.core import record

    monkeypatch.setattr(record, "live", lambda: (0, 0))


@pytest.mark.usefixtures("debug_build")
def test_a_debug_build_is_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["doctor"]) == 0
    assert "Not measured: " in capsys.readouterr().out


def test_too_few_files_for_many_streams_are_the_reported_reason() -> None:
    command = ["sh", "-c", 'ulimit -n 1024 && exec "$0" "$@"', *LOADGEN, "doctor"]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (
        "10,000 concurrent streams: no, since this process can open only 960 connections."
        in done.stdout
    )
    assert all(line.startswith("loadgen: measuring ") for line in done.stderr.splitlines())


def test_unknown_flag_is_refused_with_a_suggestion() -> None:
    done = loadgen("doctor", "--nomeasure")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "loadgen doctor: --nomeasure: unknown; did you mean --no-measure?\n"
