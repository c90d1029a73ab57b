"""Stopping a server leaves no process; one that cannot be ended is reported."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.engines import Launcher, Leaked, Server
from loadgen.engines.launch.processes import Process
from tests.helpers.fake_engine import Fake, daemon_of, gone, wait_for_end
from tests.helpers.source import ROOT

MODEL = "m"


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def started(*raw: str) -> Server:
    return Launcher().start(Fake(), MODEL, raw=raw)


def test_a_stopped_server_has_been_reaped_with_its_supervisor() -> None:
    server = started()
    supervisor = server._process.supervisor_pid
    assert not gone(supervisor)
    server.stop()
    assert gone(server.pid)
    assert gone(supervisor)


def test_server_that_ignores_sigterm_is_killed_after_its_grace() -> None:
    server = started("--ignore-term")
    server.stop(grace_s=0.1)
    assert gone(server.pid)


def test_hurry_ends_the_grace_time_of_a_stop() -> None:
    server = started("--ignore-term")
    os.kill(server._process.supervisor_pid, signal.SIGSTOP)
    server._process.request_stop(3600)
    server.hurry()
    server._process.request_stop(3600)
    os.kill(server._process.supervisor_pid, signal.SIGCONT)
    server.stop(grace_s=3600)
    assert gone(server.pid)


def test_server_that_obeys_sigterm_is_not_killed() -> None:
    server = started()
    server.stop(grace_s=60)
    assert server._process.code == -signal.SIGTERM


@pytest.mark.parametrize("environment", ["tagged", "bare"])
def test_a_daemon_that_it_has_forked_twice_ends_with_it(environment: str) -> None:
    server = started("--double-fork", environment)
    daemon = daemon_of(server)
    assert os.getsid(daemon) not in (server.pid, os.getsid(0))
    server.stop()
    assert gone(daemon)


def test_a_daemon_ends_too_when_the_server_itself_has_crashed() -> None:
    server = started("--double-fork", "bare")
    daemon = daemon_of(server)
    os.kill(server.pid, signal.SIGKILL)
    assert server.wait_ended(20)
    trouble = server.trouble()
    assert trouble is not None
    assert trouble.crash.kind == "killed"
    assert "SIGKILL" in trouble.crash.cause
    assert not gone(daemon)
    server.stop()
    assert gone(daemon)


def test_suspended_server_hangs_and_can_be_stopped() -> None:
    server = started()
    os.kill(server.pid, signal.SIGSTOP)
    trouble = server.trouble(timeout_s=0.2)
    assert trouble is not None
    assert trouble.crash.kind == "hang"
    server.stop()
    assert gone(server.pid)


def test_a_child_that_it_never_reaped_is_reaped() -> None:
    server = started("--zombie")
    (child,) = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    server.stop()
    assert gone(int(child))


def test_survivor_of_the_supervisor_is_found_by_its_tag() -> None:
    server = started("--double-fork", "tagged")
    daemon = daemon_of(server)
    os.kill(server._process.supervisor_pid, signal.SIGKILL)
    assert wait_for_end(server.pid), "an engine dies with its supervisor"
    assert server.wait_ended(20)
    assert not gone(daemon)
    server.stop()
    assert wait_for_end(daemon, 0)


def test_port_held_after_stop_is_a_leak_with_its_holder() -> None:
    server = started("--share-port")
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        port = int(server.base_url.rpartition(":")[2])
        held.bind(("127.0.0.1", port))
        held.listen()
        with pytest.raises(
            Leaked, match=rf"fake: leaked: port {port} is held by process {os.getpid()} "
        ):
            server.stop()
    server.stop()


def test_process_that_survives_sigkill_is_a_named_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    server = started()
    unkillable = Process.at(os.getpid())
    assert unkillable is not None
    with monkeypatch.context() as patch:
        patch.setattr("loadgen.engines.launch.shutdown._kill_tagged", lambda run_id: [unkillable])
        with pytest.raises(
            Leaked, match=f"process {os.getpid()} .* survived SIGKILL; end this before"
        ) as leaked:
            server.stop()
    assert leaked.value.processes == (unkillable,)
    server.stop()


# -- our own end

PROGRAM = """
import signal
from loadgen.engines import Launcher
from tests.helpers.fake_engine import Fake, daemon_of
server = Launcher().start(Fake(), "m", raw=["--double-fork", "tagged"])
print(server.pid, daemon_of(server), server._process.supervisor_pid, flush=True)
signal.pause()
"""


def killed(*, supervisor_too: bool) -> tuple[int, int]:
    """Kill a program that has started a server; returns the ids of that and of its daemon."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, cwd=ROOT
    ) as program:
        assert program.stdout is not None
        server, daemon, supervisor = map(int, program.stdout.readline().split())
        if supervisor_too:
            os.kill(supervisor, signal.SIGSTOP)  # it can do nothing more
        program.kill()
        if supervisor_too:
            os.kill(supervisor, signal.SIGKILL)
    return server, daemon


def test_killed_program_leaves_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    killed(supervisor_too=False)
    assert Launcher().orphans() == [], "its supervisor has ended"
    assert list((tmp_path / "t").iterdir()) == []


def test_killed_program_leaves_no_server_and_no_daemon() -> None:
    for pid in killed(supervisor_too=False):
        assert wait_for_end(pid)
    assert Launcher().orphans() == []


def test_orphan_of_killed_supervisor_is_reported_by_next_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, daemon = killed(supervisor_too=True)
    assert wait_for_end(server), "an engine dies with its supervisor"
    try:
        with Launcher().begin(Fake(), MODEL):
            assert f"still runs: {daemon} (" in caplog.text
            assert "fake at http://127.0.0.1:" in caplog.text
    finally:
        os.kill(daemon, signal.SIGKILL)
    assert wait_for_end(daemon)
    assert Launcher().orphans() == []
