"""`loadgen tune init`: a study of each engine that a plan accepts."""

import re
from pathlib import Path

import pytest

from loadgen.cli.main import dispatch
from loadgen.lab.study.spec.starter import STARTERS


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("engine", STARTERS)
def test_a_plan_accepts_the_study(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["tune", "init", "mine.yaml", "--engine", engine]) == 0
    said = "Wrote: mine.yaml; `loadgen tune plan mine.yaml` shows what it would start\n"
    assert capsys.readouterr().out == said
    assert dispatch(["tune", "plan", "mine.yaml"]) == 0
    assert capsys.readouterr().out.startswith("Study mine: ")
    checks = Path("mine.yaml").read_text().count("# CHECK")
    assert (checks == 0) == (engine == "sim")


def test_a_file_is_not_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    Path("study.yaml").write_text("mine")
    assert dispatch(["tune", "init"]) == 2
    assert capsys.readouterr().err == "loadgen tune: study.yaml exists; name a new file\n"
    assert Path("study.yaml").read_text() == "mine"


def test_another_engine_is_refused_with_those_that_are_ready(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dispatch(["tune", "init", "--engine", "vlm"]) == 2
    assert "no study for 'vlm' is ready; did you mean vllm?" in capsys.readouterr().err
    assert not Path("study.yaml").exists()


@pytest.mark.slow
def test_the_study_of_the_simulator_runs_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["tune", "init"]) == 0
    assert dispatch(["tune", "run", "study.yaml", "--no-live"]) == 0
    # Which of these depends on what else the machine does.
    answers = "^(?:WINNER|NO WINNER|FINISHED)"
    printed = capsys.readouterr().out
    assert re.search(answers, printed, re.MULTILINE)
    assert printed.endswith("`loadgen tune report study.store` writes the report\n")
