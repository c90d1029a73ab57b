"""A server that dies under load ends the run, which keeps its results and names the time."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command_line import SHORT, TOKENIZER, ended, hear, loadgen, served, start
from tests.helpers.console_lines import report_of, whole


@contextlib.contextmanager
def killed(*flags: str, cwd: Path) -> Iterator["subprocess.Popen[str]"]:
    """A run whose server is killed once some requests have ended."""
    files = ["--save-result", "--result-filename", "r.json", "--records", "r.jsonl"]
    with served() as (url, server):
        asked = [
            "--base-url",
            url,
            "--tokenizer",
            TOKENIZER,
            "--rate",
            "40",
            *SHORT,
            *files,
            *flags,
        ]
        run = start("run", *asked, cwd=cwd)
        try:
            hear(run, lambda line: ended(line) > 20)
            server.kill()
            yield run
        finally:
            run.kill()
            run.communicate()


def read(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "r.json").read_text())
    return result


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_dead_server_ends_the_run_with_exit_code_5(tmp_path: Path, workers: str) -> None:
    with killed("--duration", "120", "--workers", workers, cwd=tmp_path) as run:
        out, err = run.communicate(timeout=60)
    assert run.returncode == 5, err
    own = read(tmp_path)["loadgen"]
    assert own["outcomes"]["ok"] > 20
    assert 0 < own["no_answer_since_s"] < 30
    assert own["partial"].startswith(f"no answer from {own['no_answer_since_s']:.1f} s on: ")
    assert own["cancelled"]["never_sent"] > 1000
    assert own["partial"] in whole(out)
    if workers == "1":  # those of two name other requests as examples
        assert loadgen("report", "r.jsonl", cwd=tmp_path).stdout == report_of(out)


def test_keep_going_sends_to_the_end(tmp_path: Path) -> None:
    with killed("--duration", "8", "--keep-going", cwd=tmp_path) as run:
        run.communicate(timeout=60)
    assert run.returncode == 5  # most requests failed
    own = read(tmp_path)["loadgen"]
    assert 0 < own["no_answer_since_s"] < 8
    assert own["partial"] is None


def test_a_closed_loop_waits_after_a_refused_connection(tmp_path: Path) -> None:
    with killed(
        "--max-concurrency", "4", "--duration", "120", "--rate", "inf", cwd=tmp_path
    ) as run:
        out, _ = run.communicate(timeout=60)
    own = read(tmp_path)["loadgen"]
    assert own["outcomes"]["refused"] < 400  # ten a second for each of four, for five seconds: 200
    assert own["partial"] in whole(out)


def test_dead_target_of_two_does_not_end_the_run(tmp_path: Path) -> None:
    with (
        served() as (other, _),
        killed(
            *("--duration", "8", "--base-url", other, "--balance", "round-robin"), cwd=tmp_path
        ) as run,
    ):
        run.communicate(timeout=60)
    own = read(tmp_path)["loadgen"]
    assert own["partial"] is None
    assert own["outcomes"]["refused"] > 100
    assert run.returncode == 5
