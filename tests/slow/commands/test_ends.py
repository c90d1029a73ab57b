"""Whatever ends a run, its measurements are reported or kept in records for a later report."""

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from loadgen.engines.launch import server_registry
from tests.helpers.command_line import (
    LOADGEN,
    SHORT,
    TOKENIZER,
    ended,
    environment,
    hear,
    ignored,
    in_flight,
    interrupt,
    loadgen,
    served,
    start,
)
from tests.helpers.console_lines import report_of


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder; what loadgen leaves is in a folder of its own there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "loadgen"


@contextlib.contextmanager
def running(url: str, *flags: str, cwd: Path | None = None) -> Iterator["subprocess.Popen[str]"]:
    """A run of 30 s that is long enough for anything to happen to it."""
    run = start(
        "run",
        "--base-url",
        url,
        "--tokenizer",
        TOKENIZER,
        "--duration",
        "30",
        *SHORT,
        *flags,
        cwd=cwd,
    )
    try:
        yield run
    finally:
        run.kill()
        run.communicate()


def journals(state: Path) -> list[Path]:
    return (
        [path for path in state.glob("*") if path.name != server_registry.FILE]
        if state.exists()
        else []
    )


# -- interrupted


def test_waiting_for_a_server_is_given_up_at_once() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with running(url, "--rate", "20", "--ready-check-timeout-sec", "600") as run:
            assert url in hear(run, lambda line: "waiting for the server" in line)
            run.send_signal(signal.SIGINT)
            assert run.wait(5) == 130


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupted_run_has_a_partial_report_and_records(
    tmp_path: Path, state: Path, times: int
) -> None:
    flags = ["--rate", "20", "--save-result", "--result-filename", "r.json"]
    # Whether what is in flight may end before the second.
    step_ms = "200" if times == 1 else "60000"
    with served("--step-base-ms", step_ms) as (url, _), running(url, *flags, cwd=tmp_path) as run:
        out, err = interrupt(run, times)
    assert run.returncode == 130, err
    assert "PARTIAL: interrupted" in out
    assert "Traceback" not in err
    result = json.loads((tmp_path / "r.json").read_text())
    own = result["loadgen"]
    assert own["partial"] == "interrupted"
    assert own["outcomes"]["cancelled"] > 0
    assert sum(own["outcomes"].values()) == result["num_prompts"] == own["scheduled"]
    if times == 1:
        assert own["outcomes"].get("ok", 0) > 0  # what was in flight was allowed to end
    (journal,) = journals(state)
    assert f"loadgen report {journal}" in err
    assert loadgen("report").stdout == report_of(out)


def test_an_interrupt_before_anything_is_measured_says_so(state: Path) -> None:
    run = start(
        "run",
        "--engine",
        "sim",
        "--rate",
        "10",
        "--random-input-len",
        "100000",
        "--num-prompts",
        "3000",
    )
    hear(run, lambda line: "preparing" in line)
    # Two seconds later, while the workers have long connected.
    assert "preparing" in hear(run, lambda line: True)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=30)
    assert run.returncode == 130
    assert "interrupted before anything was measured" in err
    assert "Traceback" not in err
    assert not journals(state)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_or_a_lost_terminal_ends_the_run_at_once_with_a_partial_report(
    number: signal.Signals,
) -> None:
    with served("--step-base-ms", "60000") as (url, _), running(url, "--rate", "50") as run:
        hear(run, in_flight)
        run.send_signal(number)
        out, err = run.communicate(timeout=30)
    assert run.returncode == 130, err
    assert "PARTIAL: interrupted" in out


def test_a_run_under_nohup_outlives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does; a child inherits it
    try:
        with served("--step-base-ms", "60000") as (url, _), running(url, "--rate", "50") as run:
            hear(run, in_flight)
            assert signal.SIGHUP in ignored(run.pid)
    finally:
        signal.signal(signal.SIGHUP, before)


# -- killed


def measuring_process(run: "subprocess.Popen[str]") -> psutil.Process:
    return next(
        child for child in psutil.Process(run.pid).children() if child.name() == "loadgen-worker"
    )


def test_a_killed_measuring_process_leaves_a_partial_report_that_is_invalid(
    tmp_path: Path, state: Path
) -> None:
    flags = ["--rate", "100", "--save-result", "--result-filename", "r.json", "--full"]
    with served() as (url, _), running(url, *flags, cwd=tmp_path) as run:
        hear(run, lambda line: ended(line) > 100)
        measuring_process(run).kill()
        out, err = run.communicate(timeout=30)
    assert run.returncode == 3, err
    assert "PARTIAL: the measuring process was killed by signal 9." in out
    assert "\nINVALID: " in out
    assert " scrape" in out
    assert json.loads((tmp_path / "r.json").read_text())["completed"] > 0
    assert f"loadgen report {journals(state)[0]}" in err


def test_a_killed_command_leaves_records_from_which_a_partial_report_is_made(state: Path) -> None:
    with served() as (url, _), running(url, "--rate", "100") as run:
        hear(run, lambda line: ended(line) > 100)
        worker = measuring_process(run)
        said = loadgen("report")
        assert said.returncode == 2  # it goes on
        run.kill()
        worker.wait(timeout=30)  # it notices that it is alone
        assert run.stderr is not None
        assert "Traceback" not in run.stderr.read()
    done = loadgen("report")
    assert done.returncode == 0, done.stderr
    assert "PARTIAL:" in done.stdout
    assert str(journals(state)[0]) in done.stderr
    assert done.stderr.count("\n") == 1
    assert json.loads(loadgen("report", "--json", str(journals(state)[0])).stdout)["completed"] > 0


def test_everything_killed_at_once_leaves_what_was_written(state: Path) -> None:
    with served() as (url, _), running(url, "--rate", "100") as run:
        # In the fourth second: what ended a second ago has been written.
        hear(run, lambda line: ended(line) > 300)
        worker = measuring_process(run)
        worker.suspend()
        run.kill()
        worker.kill()
    done = loadgen("report")
    assert "requests had ended when the records stopped" in done.stdout
    assert "\nINVALID: " in done.stdout
    assert json.loads(loadgen("report", "--json").stdout)["completed"] > 100


def test_a_killed_run_with_records_of_the_users_leaves_those_alone(
    tmp_path: Path, state: Path
) -> None:
    with (
        served() as (url, _),
        running(url, "--rate", "100", "--records", "r.jsonl", cwd=tmp_path) as run,
    ):
        hear(run, lambda line: ended(line) > 100)
        worker = measuring_process(run)
        run.kill()
        worker.wait(timeout=30)
    assert not journals(state)
    assert "PARTIAL:" in loadgen("report", "r.jsonl", cwd=tmp_path).stdout


# -- what is left when, and where


def test_run_that_ends_normally_leaves_no_journal(state: Path) -> None:
    assert (
        loadgen(
            "run", "--engine", "sim", "--num-prompts", "3", "--max-concurrency", "1", *SHORT
        ).returncode
        == 0
    )
    assert not journals(state)


def test_records_that_were_asked_for_are_the_only_ones(tmp_path: Path, state: Path) -> None:
    flags = ["--num-prompts", "3", "--max-concurrency", "1", "--records", "r.jsonl"]
    done = loadgen("run", "--engine", "sim", *flags, *SHORT, cwd=tmp_path)
    assert not journals(state)
    assert loadgen("report", "r.jsonl", cwd=tmp_path).stdout == report_of(done.stdout)


def test_the_latest_journals_are_kept(state: Path) -> None:
    state.mkdir(parents=True)
    # No process has that number.
    left = [state / f"20260101-0000{age:02}-{2**22 + 1}.journal" for age in range(20)]
    for age, path in enumerate(left):
        path.touch()
        os.utime(path, (1000 - age, 1000 - age))
    loadgen("run", "--engine", "sim", "--num-prompts", "3", "--max-concurrency", "1", *SHORT)
    assert sorted(journals(state)) == left[:9]


def test_a_state_folder_that_cannot_be_written_stops_no_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/state")
    done = loadgen("run", "--engine", "sim", "--num-prompts", "3", "--max-concurrency", "1", *SHORT)
    assert done.returncode == 0, done.stderr
    assert "no crash journal: /dev/null/state/loadgen cannot be written" in done.stderr


def test_a_journal_without_records_is_not_the_latest(tmp_path: Path, state: Path) -> None:
    flags = ["--num-prompts", "3", "--max-concurrency", "1", "--records", "r.jsonl"]
    loadgen("run", "--engine", "sim", *flags, *SHORT, cwd=tmp_path)
    state.mkdir(parents=True, exist_ok=True)
    older, empty = (state / f"2026010{day}-000000-{2**22 + 1}.journal" for day in (1, 2))
    older.write_bytes((tmp_path / "r.jsonl").read_bytes())
    os.utime(older, (1000, 1000))
    empty.touch()
    done = loadgen("report")
    assert done.returncode == 0, done.stderr
    older.unlink()
    assert "no run that ended early has left records" in loadgen("report").stderr


def test_without_a_journal_report_asks_for_a_file(state: Path) -> None:
    done = loadgen("report")
    assert done.returncode == 2
    assert f"no run that ended early has left records in {state}" in done.stderr


# -- nobody reads, nowhere to write


def test_result_is_saved_though_stdout_is_closed(tmp_path: Path) -> None:
    run = start(
        "run",
        "--engine",
        "sim",
        "--num-prompts",
        "3",
        "--max-concurrency",
        "1",
        "--save-result",
        "--result-filename",
        "r.json",
        *SHORT,
        cwd=tmp_path,
    )
    assert run.stdout is not None
    run.stdout.close()
    assert run.stderr is not None
    with run.stderr:
        err = run.stderr.read()
    run.wait(timeout=30)
    assert "Traceback" not in err
    assert json.loads((tmp_path / "r.json").read_text())["completed"] == 3


@pytest.mark.parametrize("output", ["stdout", "stderr"])
def test_slo_exit_code_holds_though_an_output_is_closed(tmp_path: Path, output: str) -> None:
    run = start(
        "run",
        "--engine",
        "sim",
        "--num-prompts",
        "3",
        "--slo",
        "ttft_max<0.001ms",
        *SHORT,
        cwd=tmp_path,
    )
    left = {"stdout": run.stdout, "stderr": run.stderr}
    gone, read = left.pop(output), left.popitem()[1]
    assert gone is not None
    assert read is not None
    gone.close()
    with read:
        said = read.read()
    assert run.wait(timeout=30) == 6
    assert "Traceback" not in said


def test_a_result_that_cannot_be_saved_is_printed_and_its_records_are_kept(
    tmp_path: Path, state: Path
) -> None:
    flags = [
        "--num-prompts",
        "3",
        "--max-concurrency",
        "1",
        "--append-result",
        "--result-filename",
        "r.json",
    ]
    (tmp_path / "r.json").symlink_to("/dev/full")
    command = [*LOADGEN, "run", "--engine", "sim", *flags, *SHORT]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "Serving Benchmark Result" in done.stdout
    assert "could not be saved" in done.stderr
    assert "No space left on device" in done.stderr
    assert len(journals(state)) == 1
