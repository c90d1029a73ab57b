"""Usual start times per engine and model, unknown where none was recorded."""

import signal
from pathlib import Path

import pytest

from loadgen.engines import Launcher
from loadgen.engines.launch.server_registry import FILE, MAX_SERVERS, MAX_STARTS, StartupHistory
from loadgen.util import files
from tests.helpers.fake_engine import Fake


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return files.state_folder()


def test_server_that_never_started_has_no_usual_time() -> None:
    assert StartupHistory().usual_s("vllm", "a/model") is None


def test_the_usual_time_is_the_median_of_the_latest() -> None:
    times = StartupHistory()
    for seconds in (900.0, *(10.0 + i for i in range(MAX_STARTS))):
        times.add("vllm", "a/model", seconds)
    assert StartupHistory().usual_s("vllm", "a/model") == 10.0 + MAX_STARTS // 2


def test_each_engine_and_each_model_has_its_own() -> None:
    times = StartupHistory()
    times.add("vllm", "a/model", 10.0)
    assert times.usual_s("vllm", "b/model") is None
    assert times.usual_s("sglang", "a/model") is None


@pytest.mark.integration
def test_oldest_servers_are_forgotten() -> None:
    times = StartupHistory()
    for number in range(MAX_SERVERS + 1):
        times.add("vllm", f"model {number}", 10.0)
    assert times.usual_s("vllm", "model 0") is None
    assert times.usual_s("vllm", "model 1") == 10.0


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"vllm a/model": "soon"}', '{"vllm a/model": ["soon"]}']
)
def test_a_file_that_makes_no_sense_is_as_if_there_were_none(state: Path, text: str) -> None:
    state.mkdir()
    (state / FILE).write_text(text)
    assert StartupHistory().usual_s("vllm", "a/model") is None
    StartupHistory().add("vllm", "a/model", 10.0)
    assert StartupHistory().usual_s("vllm", "a/model") == 10.0


def test_a_folder_that_cannot_be_written_is_no_error(state: Path) -> None:
    state.parent.joinpath(state.name).write_text("a file where the folder should be")
    StartupHistory().add("vllm", "a/model", 10.0)
    assert StartupHistory().usual_s("vllm", "a/model") is None


@pytest.mark.integration
def test_a_server_knows_how_long_the_one_before_took() -> None:
    first = Launcher().start(Fake(), "a/model")
    assert first.usual_s is None
    first.stop()
    took_s = StartupHistory().usual_s("fake", "a/model")
    assert took_s is not None
    second = Launcher().begin(Fake(), "a/model")
    assert second.usual_s == took_s
    second.stop()


@pytest.mark.integration
def test_server_stopped_at_once_ends_by_sigterm() -> None:
    server = Launcher().begin(Fake(), "a/model")
    server.stop()
    assert server._process.code == -signal.SIGTERM
