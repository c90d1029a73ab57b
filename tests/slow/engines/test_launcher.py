"""Starting a server: ready after a first token; each failure has its own message."""

import os
import resource
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.engines import EngineFailed, Launcher, Probes
from loadgen.engines.kinds import vllm
from loadgen.engines.launch import ports
from loadgen.engines.launch.launcher import MAX_FAILED_LOGS
from loadgen.engines.launch.supervisor_main import FIRST_LOG_BYTES, MAX_LOG_BYTES
from loadgen.errors import BadInput, EngineError
from loadgen.util import files
from tests.helpers.fake_engine import Fake, a_stranger_who_is_faster, gone, is_answered, wait_until

MODEL = "some/model"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder, of each test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return files.state_folder() / "engines"


def failure(*raw: str, timeout_s: float = 30.0, listens: bool = False) -> EngineFailed:
    """How a fake with these switches fails to start, once it listens if it does; nothing of it
    is left but its log.
    """
    server = Launcher().begin(Fake(), MODEL, raw=raw)
    port = int(server.base_url.rpartition(":")[2])
    pid = server.pid
    if listens:
        wait_until(lambda: is_answered(port), server)
    with pytest.raises(EngineFailed) as failed:
        server.ready(timeout_s)
    assert gone(pid)
    assert ports.is_free("127.0.0.1", port)
    assert not list((files.state_folder() / "engines").glob("*.json"))
    assert failed.value.log.exists()
    assert str(failed.value.log) in str(failed.value)
    return failed.value


def test_server_that_answers_is_ready_and_stops_cleanly(state: Path) -> None:
    server = Launcher().begin(Fake(), MODEL)
    assert "starting" in repr(server)
    assert server.ready() == server.base_url
    assert "ready" in repr(server)
    assert server.trouble() is None
    assert list(state.glob("*.json"))
    server.stop()
    server.stop()
    assert "stopped" in repr(server)
    assert not server.alive()
    assert gone(server.pid)
    assert not state.exists()


def test_a_server_is_a_context_manager() -> None:
    with Launcher().begin(Fake(), MODEL) as server:
        assert server.trouble() is None
    assert gone(server.pid)


def test_a_server_with_chats_alone_is_ready_too() -> None:
    Launcher().start(Fake(), MODEL, raw=["--chat-only"]).stop()


def test_logs_stay_in_the_folder_that_was_named(tmp_path: Path) -> None:
    server = Launcher(tmp_path / "study").start(Fake(), MODEL)
    server.stop()
    assert server.log.last_line() == "loading weights"
    assert server.log.path.is_relative_to(tmp_path / "study")


def test_servers_start_without_a_writable_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with Launcher().begin(Fake(), MODEL) as server:
        folder = server.log.path.parent
    assert not folder.exists()


def test_named_folder_that_is_not_writable_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        EngineError, match=r"file/logs cannot be written \(Not a directory\); name another folder"
    ):
        Launcher(tmp_path / "file/logs").begin(Fake(), MODEL)


def test_only_the_last_failures_keep_their_logs(state: Path) -> None:
    for number in range(MAX_FAILED_LOGS + 5):
        (state / f"20200101-0000{number:02}-fake-0").mkdir(parents=True)
    Launcher().start(Fake(), MODEL).stop()
    assert len(list(state.iterdir())) == MAX_FAILED_LOGS
    assert not (state / "20200101-000004-fake-0").exists()


def test_files_and_log_are_readable_by_owner_only(tmp_path: Path) -> None:
    with Launcher(tmp_path).begin(Fake(), MODEL) as server:
        folder = server.log.path.parent
        for path in (folder / "private/config.json", server.log.path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_environment_has_variables_and_tag_but_no_api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with Launcher().begin(Fake(), MODEL, {"SOME_KNOB": 3}) as server:
        variables = Path(f"/proc/{server.pid}/environ").read_text().split("\0")
    assert {"SOME_KNOB=3", f"LOADGEN_RUN_ID={server.run_id}", f"PATH={os.environ['PATH']}"} <= set(
        variables
    )
    assert not any("sk-of-nobody" in variable for variable in variables)


@pytest.fixture
def _low_limits() -> Iterator[None]:
    """Of this process: a core of some size, few files."""
    before = {
        name: resource.getrlimit(name) for name in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE)
    }
    for name, (_, most) in before.items():
        resource.setrlimit(name, (1024, most))
    yield
    for name, limits in before.items():
        resource.setrlimit(name, limits)


@pytest.mark.usefixtures("_low_limits")
def test_server_has_its_own_session_and_writes_no_core() -> None:
    with Launcher().begin(Fake(), MODEL) as server:
        assert os.getsid(server.pid) == server.pid
        limits = Path(f"/proc/{server.pid}/limits").read_text().splitlines()
    (core,) = (line.split() for line in limits if line.startswith("Max core file size"))
    (files,) = (line.split() for line in limits if line.startswith("Max open files"))
    assert core[4] == "0"
    assert files[3] == files[4]


@pytest.mark.parametrize(
    ("raw", "said"),
    [(["--never-listen", "--say", "loading 3 of 9"], "loading 3 of 9"), (["--hang"], "asked")],
)
def test_progress_has_log_lines_until_first_token(raw: list[str], said: str) -> None:
    told = []
    server = Launcher().begin(Fake(), MODEL, raw=raw)
    enough = threading.Event()

    def hear(elapsed_s: float, last_line: str) -> None:
        told.append((elapsed_s, last_line))
        if last_line == said:
            enough.set()

    def wait() -> None:
        with pytest.raises(EngineError, match="stopped while it was starting"):
            server.ready(on_progress=hear)
        ended.set()

    ended = threading.Event()
    waiting = threading.Thread(target=wait)
    waiting.start()
    assert enough.wait(30)
    server.stop(0.0)  # in one thread while another waits
    waiting.join(30)
    assert ended.is_set()
    assert [elapsed_s for elapsed_s, _ in told] == sorted(elapsed_s for elapsed_s, _ in told)


# -- not ready


def test_a_command_that_does_not_exist_is_named(state: Path) -> None:
    with pytest.raises(
        EngineFailed, match=r"command '/nowhere/engine' not found; install .* or set PATH$"
    ) as failed:
        Launcher().begin(Fake(command=["/nowhere/engine"]), MODEL)
    assert failed.value.crash.kind == "not_installed"
    assert not failed.value.crash.transient
    assert not list(state.glob("*"))


def test_bad_knob_leaves_no_folder_and_no_reservation(state: Path) -> None:
    reserved = ports.reserve("127.0.0.1")
    reserved.release()
    with pytest.raises(BadInput, match="max_seqs"):
        Launcher().begin(vllm.engine, MODEL, {"max_seqs": 0}, port=reserved.port)
    assert not list(state.glob("*"))
    ports.reserve("127.0.0.1", reserved.port).release()


def test_a_command_that_is_no_program_says_so(tmp_path: Path) -> None:
    (tmp_path / "engine").write_text("no program")
    (tmp_path / "engine").chmod(0o755)
    server = Launcher().begin(Fake(command=[str(tmp_path / "engine")]), MODEL)
    with pytest.raises(
        EngineFailed, match=r"not_installed: error: cannot run .*engine: Exec format error"
    ):
        server.ready()


def test_server_that_ends_at_start_has_its_cause() -> None:
    failed = failure(
        "--exit", "1", "--say", "ValueError: No available memory for the cache blocks."
    )
    assert failed.crash.kind == "oom_kv"
    assert failed.crash.cause == "ValueError: No available memory for the cache blocks."
    assert failed.crash.code == 1


def test_server_that_ends_silently_has_its_exit_code() -> None:
    failed = failure("--exit", "3", "--silent")
    assert (failed.crash.kind, failed.crash.cause) == ("unknown", "exit code 3")
    assert str(failed).endswith("is empty")


def test_an_unknown_flag_is_a_bad_flag() -> None:
    failed = failure("--unheard-of")
    assert failed.crash.kind == "bad_flag"
    assert "unrecognized arguments: --unheard-of" in failed.crash.cause


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        (["--never-listen"], "refused"),
        (["--health", "503"], "/health answers 503"),
        (["--no-token"], "a completion has no token"),
        (["--hang"], "no response in"),
    ],
)
def test_server_without_a_token_in_time_is_stopped(
    switch: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if switch == ["--no-token"]:  # it answers, however late
        monkeypatch.setattr("loadgen.engines.launch.server.MAX_POLL_S", 20.0)
    failed = failure(*switch, timeout_s=0.5, listens=switch != ["--never-listen"])
    assert failed.crash.kind == "start_timeout"
    assert "no token after 0.5 s" in failed.crash.cause
    assert said in failed.crash.cause
    assert failed.crash.transient


def test_server_that_answers_without_a_token_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("loadgen.engines.launch.server.FAILING_S", 0.2)
    failed = failure("--no-token", timeout_s=600)
    assert failed.crash.kind == "no_token"
    assert "a completion has no token: 200 " in failed.crash.cause
    assert not failed.crash.transient


def test_server_whose_worker_has_died_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadgen.engines.launch.server.FAILING_S", 0.2)
    failed = failure("--dies-inside", timeout_s=600)
    assert failed.crash.kind == "oom_load"
    assert (
        failed.crash.cause
        == "torch.OutOfMemoryError: CUDA out of memory; for 0.2 s, /health answers 503 {}"
    )


def test_start_timeout_has_the_error_of_the_log() -> None:
    failed = failure("--no-token", "--say", "KeyError: 'weight'", timeout_s=0.5, listens=True)
    assert failed.crash.kind == "start_timeout"
    assert failed.crash.cause.endswith("; its log says KeyError: 'weight'")


def test_server_of_another_model_is_not_waited_for() -> None:
    failed = failure("--serves", "other", timeout_s=600)
    assert failed.crash.kind == "wrong_model"
    assert "the server has 'other' and not 'some/model'" in failed.crash.cause


def test_server_that_refuses_prompts_is_not_waited_for() -> None:
    failed = failure("--refuse", timeout_s=600)
    assert failed.crash.kind == "wrong_model"
    assert "400" in failed.crash.cause
    assert "no prompts today" in failed.crash.cause


def test_a_flood_of_words_is_cut_and_its_beginning_kept() -> None:
    with Launcher().begin(Fake(), MODEL, raw=["--flood"]) as server:  # listens once its log was cut
        beginning = server.log.path.with_name("engine.log.first")
        assert beginning.stat().st_size == FIRST_LOG_BYTES
        assert server.log.path.stat().st_size < MAX_LOG_BYTES
        assert "the first line" in server.log.text()[:1000]


# -- ports


def test_taken_port_is_refused_with_its_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        with pytest.raises(
            BadInput, match=rf"^port: {port} is taken by process {os.getpid()} \(.*python"
        ):
            Launcher().begin(Fake(), MODEL, port=port)


def test_port_taken_after_reservation_is_an_engine_failure() -> None:
    with a_stranger_who_is_faster():
        server = Launcher().begin(Fake(), MODEL)
        # Its health is answered by nobody: the stranger only listens.
        with pytest.raises(
            EngineFailed, match=r"port_in_use: OSError: .* Address already in use"
        ) as failed:
            server.ready()
        assert failed.value.crash.transient


def test_port_reservations_are_distinct() -> None:
    first, second = ports.reserve("127.0.0.1"), ports.reserve("127.0.0.1")
    assert first.port != second.port
    with pytest.raises(BadInput, match="a server that is about to start"):
        ports.reserve("127.0.0.1", first.port)
    first.release()
    ports.reserve("127.0.0.1", first.port).release()
    second.release()


def test_reserved_port_is_outside_outgoing_range() -> None:
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    reserved = ports.reserve("127.0.0.1")
    reserved.release()
    assert not low <= reserved.port <= high


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^host: cannot listen on 192\.0\.2\.1"):
        Launcher().begin(Fake(), MODEL, host="192.0.2.1")


# -- running


def test_server_that_ends_after_ready_has_crashed() -> None:
    with Launcher().begin(Fake(), MODEL, raw=["--exit-when-flushed", "1"]) as server:
        with pytest.raises(EngineError, match="caches cannot be emptied"):
            server.flush()
        assert server.wait_ended(30)
        trouble = server.trouble()
    assert trouble is not None
    assert trouble.crash.kind == "oom_run"
    assert trouble.crash.code == 1


def test_server_with_endless_503_is_reported_as_hang() -> None:
    with Launcher().begin(Fake(), MODEL, raw=["--sick-when-flushed"]) as server:
        server.flush()
        trouble = server.trouble()
        assert server.alive()
    assert trouble is not None
    assert trouble.crash.kind == "hang"
    assert "503" in trouble.crash.cause


def test_healthy_server_without_a_token_hangs() -> None:
    with Launcher().begin(Fake(), MODEL, raw=["--hang-when-flushed"]) as server:
        assert server.trouble(token=True) is None
        server.flush()
        assert server.trouble() is None
        trouble = server.trouble(0.5, token=True)
    assert trouble is not None
    assert trouble.crash.kind == "hang"
    assert "no response in 0.5 s" in trouble.crash.cause


def test_a_flush_is_tried_again_while_requests_run() -> None:
    with Launcher().begin(Fake(), MODEL, raw=["--busy", "1"]) as server:
        server.flush()


def test_a_flush_that_is_always_refused_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadgen.engines.launch.server.FLUSH_TRIES", 2)
    monkeypatch.setattr("loadgen.engines.launch.server.FLUSH_RETRY_S", 0.0)
    with (
        Launcher().begin(Fake(), MODEL, raw=["--busy", "9"]) as server,
        pytest.raises(EngineError, match="POST /flush answers 400"),
    ):
        server.flush()


def test_reported_settings_are_compared_with_the_request() -> None:
    class Installed(Fake):
        def version(self) -> str:
            return "1.0"

    with Launcher().begin(Installed(), MODEL, raw=["--busy", "0"]) as server:
        told = [str(difference) for difference in server.differences()]
    assert told == [
        "version: 1.0 was requested, the server has 9.9",
        "busy: 0 was requested, the server has 7",
    ]


def test_a_build_of_a_version_is_that_version() -> None:
    class Built(Fake):
        def version(self) -> str:
            return "9.9+cpu"

    with Launcher().begin(Built(), MODEL) as server:
        assert server.differences() == []


def test_engine_without_probes_reports_no_settings() -> None:
    with Launcher().begin(Fake(Probes()), MODEL) as server:
        assert (server.version(), server.resolved(), server.differences()) == (None, None, [])
        assert server.trouble() is None
