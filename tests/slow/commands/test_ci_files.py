"""The files for continuous integration: of a run, of a sweep, and what a step of GitHub is told
without a flag.
"""

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.helpers.command_line import LOADGEN, SHORT, TOKENIZER, environment, loadgen, served

FEW = ["--rate", "100", "--num-prompts", "20", "--tokenizer", TOKENIZER, *SHORT]
SLO = ["--slo", "ttft_p50<10s,e2el_p50<1us"]
NAMED = ["--markdown", "s.md", "--junit", "s.xml"]


def in_a_step(*arguments: str, cwd: Path) -> int:
    """Run `loadgen ARGUMENTS` as a step of GitHub Actions, whose summary is step.md."""
    variables = {**environment(), "GITHUB_STEP_SUMMARY": str(cwd / "step.md")}
    done = subprocess.run(
        [*LOADGEN, *arguments], cwd=cwd, env=variables, capture_output=True, timeout=60, check=False
    )
    return done.returncode


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        (["--markdown", "nowhere/s.md"], "--markdown"),
        (["--junit", "."], "--junit"),
        (["--markdown", "s", "--junit", "./s"], "--junit"),
    ],
)
def test_bad_paths_are_refused_before_anything_is_sent(
    flags: list[str], field: str, tmp_path: Path
) -> None:
    done = loadgen("run", "--base-url", "http://127.0.0.1:9", *flags, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"loadgen run: {field}: ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_search_has_no_gate(tmp_path: Path) -> None:
    done = loadgen(
        "search", "--engine", "sim", "--slo", "ttft_p50<1s", "--junit", "s.xml", cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr.startswith("loadgen search: --junit: ")


def test_files_of_a_run_are_made_again_from_its_result(tmp_path: Path) -> None:
    saving = ["--save-result", "--result-filename", "r.json"]
    with served() as (url, _):
        assert in_a_step("run", "--base-url", url, *FEW, *SLO, *NAMED, *saving, cwd=tmp_path) == 6
    text, xml = (tmp_path / "s.md").read_text(), (tmp_path / "s.xml").read_text()
    assert (tmp_path / "step.md").read_text() == text + os.linesep
    assert "## Gate: FAILED" in text
    cases = {case.get("name"): case[0].tag for case in ElementTree.fromstring(xml).iter("testcase")}
    assert (cases["ttft_p50<10s"], cases["e2el_p50<1us"]) == ("system-out", "failure")
    assert loadgen("report", "r.json", "--markdown", "-", cwd=tmp_path).stdout == text
    assert loadgen("report", "r.json", "--junit", "-", cwd=tmp_path).stdout == xml


def test_a_sweep_has_files_of_each_run_and_one_summary(tmp_path: Path) -> None:
    with served() as (url, _):
        flags = [*FEW, "--rate", "100,200", *NAMED]
        assert in_a_step("run", "--base-url", url, *flags, cwd=tmp_path) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["s-01.md", "s-01.xml", "s-02.md", "s-02.xml", "s.md", "step.md"]
    assert (tmp_path / "step.md").read_text() == (tmp_path / "s.md").read_text() + os.linesep
