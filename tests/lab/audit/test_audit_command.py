"""`loadgen audit FILE...`: its output and its exit code."""

import json
from pathlib import Path

import pytest

from loadgen.cli.main import dispatch
from tests.helpers.audited_pages import PAGES, block


@pytest.fixture
def clean(tmp_path: Path) -> str:
    path = tmp_path / "clean.md"
    path.write_text(block())
    return str(path)


@pytest.fixture
def noted(tmp_path: Path) -> str:
    path = tmp_path / "noted.md"
    path.write_text(block(output=10_150, in_flight=10))
    return str(path)


def test_a_finding_is_a_line_with_its_place_and_its_reason(
    clean: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = str(PAGES / "qwen3-32b-a100.md")
    assert dispatch(["audit", page, clean]) == 1
    lines = capsys.readouterr().out.splitlines()
    percent = (
        f"{page}:23: percent: -13.8%, should be -12.13 %: Very Long Prompt: 1580.36 / 1798.45 - 1 "
        "= -12.13 %; -13.8% is the inverse ratio, 1798.45 / 1580.36 - 1, with another sign"
    )
    assert percent in lines
    assert lines[-1].startswith("2 files: ")


def test_notes_leave_the_exit_code_alone(
    clean: str, noted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["audit", clean]) == 0
    assert capsys.readouterr().out == "1 file: 0 inconsistent, 0 notes\n"
    assert dispatch(["audit", noted]) == 0
    out = capsys.readouterr().out
    assert f"{noted}:16: note: in-flight: mean TPOT 10 ms: " in out
    assert out.endswith("1 file: 0 inconsistent, 1 notes\n")


def test_readable_files_are_listed_beside_unreadable_ones(
    noted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["audit", str(tmp_path / "none"), noted, str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out.endswith("1 file: 0 inconsistent, 1 notes\n")
    assert [line.rpartition("; ")[0].rpartition(": ")[2] for line in err.splitlines()] == [
        "No such file or directory",
        "Is a directory",
    ]


def test_json_is_a_list_of_findings(noted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["audit", "--json", noted]) == 0
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding.pop("why").startswith("10 req/s x (100 + 10 x 100.50) ms")
    assert finding == {
        "file": noted,
        "line": 16,
        "within": None,
        "rule": "in-flight",
        "says": "mean TPOT 10 ms",
        "should_be": None,
        "note": True,
        "also": [],
    }


@pytest.mark.parametrize("arguments", [["none.md"], ["--jsn", "x"], []])
def test_bad_input_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["audit", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


def test_a_page_cannot_move_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Foo-7B\n\n### Model\n\nFoo-7B\n\n### Hardware\n\n\x1b[2J H100\n\n" + block())
    assert dispatch(["audit", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
