"""The step summary of GitHub Actions: appended where the variable names a file, and fatal to nothing."""

from pathlib import Path

import pytest

from loadgen.cli import step_summary
from tests.helpers import saved_json
from tests.helpers.saved_results import ran


@pytest.fixture
def result():
    return saved_json.result(ran())


def test_summary_is_appended_to_the_file_of_the_step(result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "step"
    path.write_text("before\n")
    monkeypatch.setenv(step_summary.VARIABLE, str(path))
    step_summary.append_result(result)
    step_summary.append_result(result)
    text = path.read_text()
    assert text.startswith("before\n# org/tiny")
    assert text.count("## Gate: passed") == 2


@pytest.mark.parametrize("value", [None, ""])
def test_nothing_is_written_outside_of_github(
    result, value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if value is None:
        monkeypatch.delenv(step_summary.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(step_summary.VARIABLE, value)
    step_summary.append_result(result)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_one_line(
    result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(step_summary.VARIABLE, str(tmp_path / "none" / "step"))
    step_summary.append_result(result)
    err = capsys.readouterr().err
    assert err.startswith("loadgen: $GITHUB_STEP_SUMMARY: ")
    assert err.count("\n") == 1
