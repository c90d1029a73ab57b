"""Failed requests set the exit code, and such a run never ends as VALID."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.testing.process import started
from tests.helpers.command_line import SHORT, TOKENIZER, loadgen

RUN = [
    "--backend",
    "openai-chat",
    "--tokenizer",
    TOKENIZER,
    "--rate",
    "100",
    "--num-prompts",
    "100",
    *SHORT,
]


def failing(tmp_path: Path, plan: str, *flags: str) -> tuple[int, str, dict[str, Any]]:
    """The exit code, the report and the result of a run at a server that plays faults."""
    with started("loadgen.testing.faulty", "--plan", plan) as server:
        files = ["--save-result", "--result-filename", "r.json"]
        done = loadgen("run", "--base-url", server.url, *RUN, *files, *flags, cwd=tmp_path)
    return done.returncode, done.stdout, json.loads((tmp_path / "r.json").read_text())["loadgen"]


@pytest.mark.parametrize("plan", ["status:500=1", "status:429=0.4", "status:503=0.03"])
def test_a_run_with_failures_exits_5_and_says_so_in_its_verdict(tmp_path: Path, plan: str) -> None:
    code, out, own = failing(tmp_path, plan)
    assert code == 5
    assert own["error_rate"] > 0.01
    lines = out.splitlines()
    place = next(at for at, line in enumerate(lines) if line.startswith("FAILED: "))
    assert (f" | measurement {own['verdict']}" in lines[place]) is ("ok" in own["outcomes"])
    assert lines[place + 1].startswith("next: ")
    assert place < 4


def test_an_slo_is_missed_while_requests_fail(tmp_path: Path) -> None:
    allowed = ["--max-error-rate", "1", "--slo", "ttft_p99<10s,ttft_p20<10s"]
    code, out, own = failing(tmp_path, "status:429=0.4", *allowed)
    assert code == 6
    assert [(row["value"] is None, row["beyond"], row["met"]) for row in own["slo"]] == [
        (True, True, False),
        (False, False, True),
    ]
    assert "SLO ttft_p99<10s: MISSED (" in out


def test_failures_past_the_end_of_answers_name_the_remedy(tmp_path: Path) -> None:
    code, out, _ = failing(tmp_path, "error-after-end=1")
    assert code == 5
    assert "--no-ignore-eos" in out
    assert failing(tmp_path, "error-after-end=1", "--no-ignore-eos")[0] == 0
