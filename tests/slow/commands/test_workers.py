"""Several workers on the command line: however their run ends, it has one report."""

import json
from pathlib import Path

import psutil
import pytest

from loadgen.metrics.records.shards import further_shards
from loadgen.util.machine import usable_cores
from tests.helpers.command_line import (
    SHORT,
    TOKENIZER,
    ended,
    hear,
    interrupt,
    loadgen,
    served,
    start,
)
from tests.helpers.console_lines import report_of, whole


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder; what loadgen leaves is in a folder of its own there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "loadgen"


def flags(url: str, *more: str) -> list[str]:
    return [
        "run",
        "--base-url",
        url,
        "--tokenizer",
        TOKENIZER,
        "--duration",
        "30",
        "--workers",
        "2",
        *SHORT,
        *more,
    ]


def workers(pid: int) -> list[psutil.Process]:
    """Of a command, in the order in which it has started them."""
    children = psutil.Process(pid).children()
    return sorted(
        (one for one in children if one.name() == "loadgen-worker"), key=lambda one: one.pid
    )


def test_a_run_leaves_one_file_of_records_that_makes_its_report(tmp_path: Path) -> None:
    done = loadgen(
        "run",
        "--engine",
        "sim",
        "--rate",
        "200",
        "--num-prompts",
        "100",
        "--workers",
        "2",
        "--records",
        "r.jsonl",
        "--full",
        *SHORT,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "Client: 2 workers" in done.stdout
    assert loadgen("report", "--full", "r.jsonl", cwd=tmp_path).stdout == report_of(done.stdout)
    assert not list(further_shards(tmp_path / "r.jsonl"))


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_reaches_all_of_them(tmp_path: Path, state: Path, times: int) -> None:
    with served("--step-base-ms", "200" if times == 1 else "60000") as (url, _):
        run = start(
            *flags(url, "--rate", "20", "--save-result", "--result-filename", "r.json"),
            cwd=tmp_path,
        )
        out, err = interrupt(run, times)
    assert run.returncode == 130, err
    assert "Traceback" not in err
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["loadgen"]["partial"] == "interrupted"
    assert sum(result["loadgen"]["outcomes"].values()) == result["num_prompts"]
    assert [worker["lost"] for worker in result["loadgen"]["workers"]] == [None, None]
    assert len([path for path in state.iterdir() if path.suffix == ".journal"]) == 1
    assert loadgen("report").stdout == report_of(out)


def test_a_worker_that_is_killed_makes_the_run_invalid_and_is_named(state: Path) -> None:
    with served() as (url, _):
        run = start(*flags(url, "--rate", "100", "--full"))
        hear(run, lambda line: ended(line) > 100)
        workers(run.pid)[0].kill()
        out, err = run.communicate(timeout=30)
    assert run.returncode == 3, err
    assert "PARTIAL: worker 1 of 2 was killed by signal 9" in out
    assert "\nworkers missing: 1 of 2 workers: worker 1 was killed by signal 9" in whole(out)
    assert "\nINVALID: " in out
    assert " scrape" in out
    assert loadgen("report", "--full").stdout == out


def test_a_killed_command_leaves_what_its_workers_have_written(state: Path) -> None:
    with served() as (url, _):
        run = start(*flags(url, "--rate", "100"))
        hear(run, lambda line: ended(line) > 100)
        alone = workers(run.pid)
        run.kill()
        assert run.stderr is not None
        for worker in alone:
            worker.wait(timeout=30)  # it notices that it is alone
        assert "Traceback" not in run.stderr.read()
        run.communicate()
    done = loadgen("report", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["loadgen"]["partial"] == "the process that started the run has ended"
    assert result["completed"] > 100
    assert sum(result["loadgen"]["outcomes"].values()) == result["num_prompts"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--workers", "0"], "--workers: 0 is out of range; give auto, or 1 to 256"),
        (["--workers", "some"], "--workers: some is out of range; give auto, or 1 to 256"),
        (
            ["--workers", "3", "--max-concurrency", "2"],
            "--workers: 3 processes cannot share 2 requests in flight",
        ),
        (["--workers", "2", "--capture", "c.jsonl"], "--capture: given for several processes"),
    ],
)
def test_settings_that_workers_cannot_share_are_refused(given: list[str], said: str) -> None:
    done = loadgen("run", "--engine", "sim", *given)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line


def test_more_than_there_are_cores_is_warned_of_in_one_line() -> None:
    done = loadgen(
        "run",
        "--engine",
        "sim",
        "--num-prompts",
        "8",
        "--max-concurrency",
        "8",
        "--workers",
        "8",
        *SHORT,
    )
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stderr.splitlines() if "processes share" in line]) == int(
        usable_cores() < 8
    )
