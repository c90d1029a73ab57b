"""`loadgen import STUDY FILE...`: its output, its store and its exit codes."""

import hashlib
import json
from pathlib import Path

import pytest

from loadgen.cli.main import dispatch
from tests.helpers.audited_pages import block
from tests.helpers.console_lines import cells
from tests.helpers.imported_files import PAGES, STUDIES

STUDY, PAGE = str(STUDIES / "qwen3-14b-h100.yaml"), str(PAGES / "qwen3-14b-h100.md")


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_answer_says_where_the_results_are_and_each_is_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dispatch(["import", STUDY, PAGE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"- {PAGE}:122: engine/sglang, sharegpt: 8403.97 tok/s" in lines
    assert lines[1:3] == [
        "IMPORTED: 15 results into qwen3-14b-h100.published",
        "next: read what the results show: `loadgen tune report qwen3-14b-h100.published`",
    ]
    assert Path("qwen3-14b-h100.published/study.db").is_file()
    assert dispatch(["import", STUDY, PAGE]) == 0
    _, answer, _, *lines = capsys.readouterr().out.splitlines()
    assert answer == "IMPORTED: 0 results"
    assert lines == [f"- {PAGE}: 15 of 15 results were imported before"]


def test_imported_study_has_a_status_and_an_export(capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(["import", STUDY, PAGE, "--store", "theirs"])
    capsys.readouterr()
    assert dispatch(["tune", "status", "theirs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = [cells(line) for line in lines if line.startswith("  fp8 ")]
    assert row[-1] == "chosen by the author, 10,426.3 tok/s in a single run"
    assert dispatch(["tune", "export", "theirs"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [step["name"] for step in told["steps"]] == [
        "engine",
        "quantization",
        "attention backend",
        "confirmation",
    ]


def test_unplaced_result_exits_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.txt").write_text(block())
    assert dispatch(["import", STUDY, "log.txt", "--store", "theirs"]) == 1
    _, answer, following, line, *_ = capsys.readouterr().out.splitlines()
    assert answer == "INCOMPLETE: 0 results imported | 1 not placed"
    assert following.endswith("`--as STAGE/ARM`")
    assert line.startswith("- log.txt:1: not placed: it has no serving command; ")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["no.yaml", PAGE], "no.yaml: cannot be read"),
        ([STUDY, PAGE, "no.md"], "no.md: No such file or directory; name a page or a result"),
        ([STUDY, PAGE, "--as", "engine/mlx"], "--as: unknown arm 'engine/mlx'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_store(
    argv: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["import", *argv]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"loadgen import: {said}")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_files_are_only_read(tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    copy.write_bytes(Path(PAGE).read_bytes())
    copy.chmod(0o444)
    before = hashlib.sha256(copy.read_bytes()).hexdigest(), copy.stat().st_mtime_ns
    assert dispatch(["import", STUDY, str(copy)]) == 0
    assert (hashlib.sha256(copy.read_bytes()).hexdigest(), copy.stat().st_mtime_ns) == before
