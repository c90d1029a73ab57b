"""Files at the end of a command: a wrong name is bad input.

The summary of a step on GitHub is fatal to nothing.
"""

import errno
from pathlib import Path

import pytest

from loadgen.cli.main import dispatch
from loadgen.cli.output import STEP_SUMMARY, append_result_summary, writing
from loadgen.errors import BadInput, NotWritten
from tests.helpers import saved_json
from tests.helpers.compared_runs import saved
from tests.helpers.saved_results import ran


def fails(number: int) -> None:
    with writing("--markdown", "x.md"):
        raise OSError(number, "why", "x.md")


@pytest.mark.parametrize(
    "number", [errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EROFS]
)
def test_a_name_that_cannot_be_written_is_bad_input(number: int) -> None:
    with pytest.raises(
        BadInput, match=r"--markdown: x.md cannot be written \(why\); choose another path"
    ):
        fails(number)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG])
def test_a_disk_that_fails_is_none(number: int) -> None:
    with pytest.raises(NotWritten, match=r"--markdown: x.md cannot be written \(why\)"):
        fails(number)


@pytest.mark.parametrize("flag", ["--markdown", "--junit"])
def test_a_full_disk_has_the_code_of_errors_of_the_machine(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline, candidate = saved(tmp_path / "a.json"), saved(tmp_path / "b.json")
    for command in (
        ["report", baseline],
        ["compare", baseline, candidate, "--fail-if", "ttft_p99>+5%"],
    ):
        assert dispatch([*command, flag, "/dev/full"]) == 1
        assert (
            f"{flag}: /dev/full cannot be written (No space left on device)"
            in capsys.readouterr().err
        )
        assert dispatch([*command, flag, str(tmp_path / "nowhere" / "x")]) == 2


@pytest.fixture
def result():
    return saved_json.result(ran())


def test_summary_is_appended_to_the_file_of_the_step(
    result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "step"
    path.write_text("before\n")
    monkeypatch.setenv(STEP_SUMMARY, str(path))
    append_result_summary(result)
    append_result_summary(result)
    text = path.read_text()
    assert text.startswith("before\n# model org/tiny")
    assert text.count("## Gate: passed") == 2


@pytest.mark.parametrize("value", [None, ""])
def test_nothing_is_written_outside_of_github(
    result, value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if value is None:
        monkeypatch.delenv(STEP_SUMMARY, raising=False)
    else:
        monkeypatch.setenv(STEP_SUMMARY, value)
    append_result_summary(result)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_one_line(
    result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(STEP_SUMMARY, str(tmp_path / "none" / "step"))
    append_result_summary(result)
    err = capsys.readouterr().err
    assert err.startswith("loadgen: $GITHUB_STEP_SUMMARY: ")
    assert err.count("\n") == 1
