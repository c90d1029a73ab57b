"""Results of real runs fit the schema, whatever their end."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command_line import SHORT, TOKENIZER, interrupt, loadgen, served, start
from tests.helpers.result_schema import problems

FEW = ["--num-prompts", "20", "--rate", "200", "--tokenizer", TOKENIZER, *SHORT]
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def printed(*arguments: str, cwd: Path | None = None) -> dict[str, Any]:
    """The JSON that a command prints."""
    done = loadgen(*arguments, "--json", cwd=cwd)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_result_with_every_option_fits_the_schema(tmp_path: Path) -> None:
    kept = [
        "--save-detailed",
        "--records",
        "r.jsonl",
        "--capture",
        "c.jsonl",
        "--continuous-usage",
        "--slo",
        "e2el_max<9s",
    ]
    result = printed(
        "run",
        "--engine",
        "sim",
        "--num-prompts",
        "20",
        "--rate",
        "200",
        *SHORT,
        *kept,
        "--metadata",
        "gpu=none",
        cwd=tmp_path,
    )
    assert result["loadgen"]["server"] is not None
    assert problems(result) == []
    assert problems(printed("report", "r.jsonl", cwd=tmp_path)) == []


def test_result_of_several_targets_and_workers_fits_the_schema() -> None:
    with served() as (one, _), served() as (other, _):
        both = ["--base-url", one, "--base-url", other, "--balance", "round-robin"]
        result = printed("run", *both, "--workers", "2", *FEW)
    assert len(result["loadgen"]["targets"]) == len(result["loadgen"]["workers"]) == 2
    assert problems(result) == []


def test_result_of_a_failing_server_fits_the_schema() -> None:
    with served("--fault", "unavailable", "--fault-after", "10") as (url, _):
        result = printed("run", "--base-url", url, *FEW)
    assert result["failed"]
    assert problems(result) == []


def test_result_of_an_interrupted_run_fits_the_schema(tmp_path: Path) -> None:
    flags = ["--num-prompts", "2000", "--rate", "50", "--tokenizer", TOKENIZER, *SHORT]
    with served() as (url, _):
        run = start(
            "run", "--base-url", url, *flags, "--json", "--records", "r.jsonl", cwd=tmp_path
        )
        out, err = interrupt(run, 1)
    assert out, err
    assert problems(json.loads(out)) == []
    again = printed("report", "r.jsonl", cwd=tmp_path)
    assert again["loadgen"]["partial"]
    assert problems(again) == []


def test_results_of_sweep_and_search_fit_the_schema() -> None:
    sessions = ["--tokenizer", TOKENIZER, *SHORT]
    with served() as (url, _):
        swept = printed(
            "run", "--base-url", url, "--max-concurrency", "1,2", "--num-prompts", "20", *sessions
        )
        begun = [
            "--over",
            "concurrency",
            "--max-concurrency",
            "2",
            "--num-prompts",
            "100",
            "--slo",
            "ttft_p90<1us",
        ]
        searched = printed("search", "--base-url", url, *begun, *sessions)
    assert (swept["kind"], searched["kind"]) == ("sweep", "search")
    assert problems(swept) == problems(searched) == []


def test_result_of_sessions_fits_the_schema() -> None:
    result = printed(
        "run",
        "--engine",
        "sim",
        "--dataset-name",
        "multi_turn",
        "--turns",
        "2",
        "--num-prompts",
        "5",
        "--rate",
        "50",
    )
    assert problems(result) == []
