"""`loadgen audit FILE...`: its output and its exit code."""

import json
import os
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from loadgen.cli.main import dispatch
from loadgen.lab.audit.finding import KINDS, link
from tests.helpers.audited_pages import PAGES, block
from tests.helpers.console_lines import unwrapped
from tests.helpers.source import ROOT

FLAWED = str(PAGES / "qwen3-32b-a100.md")


@pytest.fixture
def clean(tmp_path: Path) -> str:
    path = tmp_path / "clean.md"
    path.write_text(block())
    return str(path)


@pytest.fixture
def noted(tmp_path: Path) -> str:
    path = tmp_path / "noted.md"
    path.write_text(block(cap=11, in_flight=12))
    return str(path)


def test_a_finding_is_two_lines_and_the_link_of_its_kind_comes_once(
    clean: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["audit", FLAWED, clean]) == 1
    lines = unwrapped(capsys.readouterr().out.splitlines())
    first = lines.index(
        "inconsistent: wrong change in percent: qwen3-32b-a100.md:23, "
        'row "Very Long Prompt", column "Optimized"'
    )
    assert lines[first + 1 : first + 3] == [
        "-13.8%, should be -12.13%: 1580.36 / 1798.45 - 1 = -12.13%; -13.8% is the inverse "
        "ratio, 1798.45 / 1580.36 - 1, with the sign reversed",
        "see docs/audit.md#percent",
    ]
    title, answer, following, *findings = lines
    assert title.startswith("Audit of 2 files with published results. Checked by ")
    assert re.match(
        r"INCONSISTENT: \d+ contradictions in \d+ places \| \d+ notes on weak evidence in ", answer
    )
    assert following.startswith("next: begin with qwen3-32b-a100.md:12 (the recommended ")
    assert max(map(len, findings)) <= 202
    assert any(
        line.startswith(
            "`trtllm-serve Qwen/Qwen3-32B --max_seq_len=40960 --enable_chunked_prefill`: no arm "
        )
        for line in findings
    )
    assert not any(" ...`trtllm" in line for line in findings)
    links = [line for line in lines if line.startswith("see ")]
    assert len(links) == len(set(links)) > 8


def test_full_findings_are_the_page_with_whole_paths_commands_and_all_places(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dispatch(["audit", "--full", FLAWED]) == 1
    lines = capsys.readouterr().out.splitlines()
    diluted = lines.index(f"- {FLAWED}:446")
    assert lines[diluted + 3 : diluted + 6] == [
        "",
        "1 more place",
        "  - line 554 (mean ITL 1413.87 ms -> 1885.18 ms)",
    ]
    kind = lines.index("Inconsistent: wrong change in percent")
    assert lines[kind + 2] == (
        "The change does not follow from the two numbers. See docs/audit.md#percent."
    )
    summary = [line.split() for line in lines[lines.index("Summary") + 2 : kind]]
    assert ["note", "unequal", "work", "1", "2"] in summary
    assert max(map(len, lines[kind:])) <= 100
    assert not any(line.endswith(" ...") for line in lines)
    count = lines.index(
        "INCONSISTENT: 6 contradictions in 7 places | 7 notes on weak evidence in 8 places"
    )
    assert lines[count + 1].startswith(f"next: begin with {FLAWED}:12 (")
    assert count < lines.index("Summary")


def test_files_of_one_name_keep_their_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / folder / "page.md" for folder in ("a", "b")]
    for number, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(block(cap=11, in_flight=12 + number))
    dispatch(["audit", *map(str, paths)])
    lines = unwrapped(capsys.readouterr().out.splitlines())
    assert all(any(line.endswith(f": {path}:10") for line in lines) for path in paths)


def test_the_page_has_a_summary_and_each_finding_with_its_explanation_and_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "audit.html"
    assert dispatch(["audit", FLAWED, "--html", str(target)]) == 1
    assert "wrong change in percent" in capsys.readouterr().out
    page = target.read_text()
    assert "<td>loss not mentioned</td>" in page
    assert "A latency became worse by more than the printed gain" in page
    link = quote(os.path.relpath(FLAWED, tmp_path)) + "#L23"
    assert f'<a href="{link}">qwen3-32b-a100.md:23, row' in page
    assert "mean ITL 1413.87 ms -&gt; 1885.18 ms" in page


def test_a_page_without_findings_says_so(clean: str, tmp_path: Path) -> None:
    target = tmp_path / "audit.html"
    assert dispatch(["audit", clean, "--html", str(target)]) == 0
    assert "CONSISTENT: nothing contradicts" in target.read_text()


@pytest.mark.parametrize("rule", KINDS)
def test_the_link_of_each_kind_is_a_heading_of_the_documentation(rule: str) -> None:
    path, _, section = link(rule).partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(), re.MULTILINE)
    assert section in [heading.replace("`", "").replace(", ", "-") for heading in headings]


def test_notes_leave_the_exit_code_alone(
    clean: str, noted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["audit", clean]) == 0
    study = "draft a study of the page, to measure it again: `loadgen import --make-study`"
    assert capsys.readouterr().out.endswith(f"\nCONSISTENT: nothing contradicts\nnext: {study}\n")
    assert dispatch(["audit", noted]) == 0
    out = capsys.readouterr().out
    name = Path(noted).name
    assert f"note: more requests than allowed: {name}:10\n  12 concurrent requests, " in out
    _, count, following, *_ = unwrapped(out.splitlines())
    assert count == "CONSISTENT: nothing contradicts | 1 note on weak evidence in 1 place"
    assert following.startswith(f"next: nothing contradicts; begin with {name}:10 (")


def test_readable_files_are_listed_beside_unreadable_ones(
    noted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["audit", str(tmp_path / "none"), noted, str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert "\nCONSISTENT: nothing contradicts | 1 note on weak evidence in 1 place\nnext: " in out
    assert [line.rpartition("; ")[0].rpartition(": ")[2] for line in err.splitlines()] == [
        "No such file or directory",
        "Is a directory",
    ]


def test_json_is_a_list_of_findings(noted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["audit", "--json", noted]) == 0
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding.pop("why").startswith("no more than 11 may be in flight at once: ")
    assert finding == {
        "file": noted,
        "line": 10,
        "within": None,
        "rule": "peak-concurrency",
        "says": "12 concurrent requests",
        "should_be": "at most 11",
        "note": True,
        "also": [],
    }


@pytest.mark.parametrize(
    "arguments", [["none.md"], ["--jsn", "x"], [], ["x.md", "--html", "x.pdf"]]
)
def test_bad_input_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["audit", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


def test_a_page_cannot_move_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Foo-7B\n\n### Model\n\nFoo-7B\n\n### Hardware\n\n\x1b[2J H100\n\n" + block())
    assert dispatch(["audit", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("text", ["[]", " [ ]\n"])
def test_a_file_without_a_result_is_refused(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty.json"
    path.write_text(text)
    assert dispatch(["audit", str(path)]) == 2
    assert capsys.readouterr() == (
        "",
        f"loadgen audit: {path} is empty: nothing to check; name a file that has a result\n",
    )
