"""The simulator's faults through the launcher; each has its own kind, as with any engine."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.engines import EngineFailed, Launcher, Server
from loadgen.engines.kinds.simulator import engine
from loadgen.engines.launch.crash_cause import DETERMINISTIC
from loadgen.engines.sim.settings import CRASHES, Faults
from loadgen.errors import BadInput, Unreachable
from loadgen.testing.stream import Stream
from loadgen.util.http_client import request
from tests.helpers.fake_engine import gone, is_answered, wait_until
from tests.helpers.sim_server import words

LONG_S = 3600.0
AT_START = {name: "oom_load" if name == "oom" else name for name in CRASHES}


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def failure(timeout_s: float = 60.0, *, listens: bool = False, **flags: object) -> EngineFailed:
    """How a simulator with these flags fails to start; with `listens` the time counts from when
    it does.
    """
    server = Launcher().begin(engine, "m", raw=words(**flags))
    if listens:
        port = int(server.base_url.rpartition(":")[2])
        wait_until(lambda: is_answered(port), server)
    with pytest.raises(EngineFailed) as failed:
        server.ready(timeout_s)
    return failed.value


@contextlib.contextmanager
def serving(**flags: object) -> Iterator[Server]:
    """A simulator with these flags that has become ready."""
    server = Launcher().start(engine, "m", raw=words(**flags), timeout_s=60.0)
    try:
        yield server
    finally:
        server.stop(1.0)


def token(server: Server) -> None:
    """Ask for one; whether it comes is not said."""
    with contextlib.suppress(Unreachable):
        request(
            f"{server.base_url}/v1/completions", {"prompt": "a", "max_tokens": 1}, timeout_s=1.0
        )


@pytest.mark.parametrize(("fault", "kind"), AT_START.items())
def test_each_crash_at_start_has_its_kind(fault: str, kind: str) -> None:
    crash = failure(fault=fault).crash
    assert crash.kind == kind
    assert crash.cause == CRASHES[fault]
    assert crash.code == 1


def test_a_crash_says_what_a_file_says(tmp_path: Path) -> None:
    said = tmp_path / "said.txt"
    said.write_text("Traceback (most recent call last):\nRuntimeError: HCCL function error\n")
    assert failure(fault=said).crash.kind == "distributed"


def test_there_must_be_such_a_fault() -> None:
    with pytest.raises(
        BadInput, match=r"^--fault: unknown fault 'odd'; use one of hang, unavailable, oom, "
    ):
        Faults(fault="odd")


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        ({"profile": "a100-qwen3-32b"}, "oom_kv"),
        ({"profile": "a100-qwen3-32b", "gpu_memory_utilization": 0.7}, "oom_kv"),
    ],
)
def test_deployment_without_memory_fails_as_real_engines_do(
    flags: dict[str, object], kind: str
) -> None:
    crash = failure(**flags).crash
    assert crash.kind == kind in DETERMINISTIC


def test_after_so_many_requests_it_crashes_with_others_under_way() -> None:
    with serving(fault="oom", fault_after=2) as server:  # the first has shown that it is ready
        with Stream(server.base_url, server.model, max_tokens=10_000) as under_way:
            under_way.first()
            token(server)
            assert server.wait_ended(30.0)
        trouble = server.trouble()
    assert trouble is not None
    assert trouble.crash.kind == "oom_run"


def test_a_worker_that_dies_takes_the_server_along() -> None:
    with serving(fault="killed", fault_after=1) as server:
        token(server)
        assert server.wait_ended(30.0)
        trouble = server.trouble()
    assert trouble is not None
    assert trouble.crash.kind == "killed"
    assert trouble.crash.transient


def test_after_so_many_requests_it_hangs_and_is_healthy() -> None:
    with serving(fault="hang", fault_after=1) as server:
        assert server.trouble() is None
        token(server)
        assert server.trouble() is None
        trouble = server.trouble(0.5, token=True)
    assert trouble is not None
    assert trouble.crash.kind == "hang"
    assert "no response in" in trouble.crash.cause


def test_stream_gets_no_token_after_the_hang() -> None:
    with (
        serving(fault="hang", fault_after=2, step_base_ms=1.0) as server,
        Stream(server.base_url, server.model, max_tokens=50_000) as under_way,
    ):
        under_way.first()
        token(server)
        under_way._connection.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            list(under_way)


def test_after_so_many_requests_it_answers_503_for_ever() -> None:
    with serving(fault="unavailable", fault_after=1) as server:
        token(server)
        trouble = server.trouble()
        assert server.alive()
    assert trouble is not None
    assert trouble.crash.kind == "hang"
    assert "503" in trouble.crash.cause


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"startup_s": LONG_S}, "refused"),
        ({"startup_s": LONG_S, "early_health": True}, "a completion answers 503"),
        ({"fault": "unavailable"}, "/health answers 503"),
        ({"fault": "hang"}, "no response in"),
    ],
)
def test_a_server_that_never_becomes_ready_is_given_up(flags: dict[str, object], said: str) -> None:
    crash = failure(1.5, listens=said != "refused", **flags).crash
    assert crash.kind == "start_timeout"
    assert said in crash.cause


@pytest.mark.parametrize("early", [False, True])
def test_a_slow_start_comes_to_an_end(early: bool) -> None:
    with serving(startup_s=0.2, early_health=early) as server:
        assert "loading for 0.2 s" in server.log.text()


def test_a_start_can_be_given_up_before_its_end() -> None:
    server = Launcher().begin(engine, "m", raw=words(startup_s=LONG_S))
    wait_until(lambda: "loading" in server.log.text(), server)
    server.stop(60.0)  # SIGTERM is enough, or this test takes as long
    assert gone(server.pid)


def test_an_orphan_is_put_away_with_the_server() -> None:
    with serving(orphan=True) as server:
        found = re.search(r"^orphan (\d+)$", server.log.text(), re.MULTILINE)
        assert found
        assert not gone(int(found[1]))
    assert gone(int(found[1]))


@pytest.mark.parametrize(("ignores", "kind"), [(True, "killed"), (False, "unknown")])
def test_a_server_that_ignores_sigterm_is_killed(ignores: bool, kind: str) -> None:
    with serving(ignore_sigterm=ignores) as server:
        server.stop(0.5 if ignores else 60.0)
    trouble = server.trouble()
    assert trouble is not None
    assert trouble.crash.kind == kind
    assert (trouble.crash.code == 0) is not ignores
