"""`loadgen compare`: what it prints and writes, and how it ends."""

import json
import unicodedata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from loadgen.analysis.compare.metrics import DEFAULT_METRICS
from loadgen.cli.main import dispatch
from tests.helpers.compared_runs import FEW, recorded, saved, starts
from tests.helpers.console_lines import cells
from tests.helpers.html_page import Page


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def files() -> tuple[str, str]:
    """Two results, the second 25 % slower."""
    return saved(Path("a.json")), saved(Path("b.json"), ttft=25.0)


@pytest.fixture
def folders() -> tuple[str, str]:
    """Three starts each, the second side 25 % slower."""
    return starts(Path("c"), 20.0, 20.02, 20.04), starts(Path("d"), 25.0, 25.02, 25.04)


def test_table_has_a_line_per_metric(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["compare", *files, "--names", "base,new"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        'Comparison of "new" (b.json) with "base" (a.json). Load of each run: 20 '
    )
    assert "base  1 run, VALID, a  a.json" in lines
    (ttft,) = (cells(line) for line in lines if line.startswith("TTFT p99"))
    assert ttft == ["TTFT p99", "20.00", "25.00", "+25.0%*", "-", "no interval"]
    assert not any(line.startswith("Error rate") for line in lines)  # 0 on both sides
    assert "  - No interval (measure with --records)." in lines
    place = next(at for at, line in enumerate(lines) if line.startswith("UNDECIDED: "))
    following = lines[place + 1]
    assert following.startswith(
        "next: before you draw a conclusion, measure 3 server starts of each, "
    )
    assert place < 4
    assert max(map(len, [*lines[:place], *lines[place + 2 : -1]])) <= 100
    assert lines[-1] == lines[place]


def test_sides_are_named_after_their_files(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["compare", *files]) == 0
    assert "a     1 run, VALID, a  a.json" in capsys.readouterr().out.splitlines()


def test_suspect_run_names_its_checks(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    late = {
        "name": "lag p99",
        "value": "5 ms",
        "limit": "1 ms",
        "ok": False,
        "counts": True,
        "group": "sending",
        "advice": "none",
    }
    saved(Path("late.json"), ttft=21, verdict="SUSPECT", checks=[late])
    dispatch(["compare", files[0], "late.json"])
    lines = capsys.readouterr().out.splitlines()
    assert "late  1 run, SUSPECT for lag p99, late  late.json" in lines
    assert lines[-1].endswith(' | "a" VALID, "late" SUSPECT: lag p99')


def test_intervals_within_the_run_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["compare", recorded(Path("a")), recorded(Path("b"), factor=2.0, seed=1)]) == 0
    out = capsys.readouterr().out
    assert "within the run (blocks of" in out
    assert "between starts is unknown" in out
    assert '"b" is slower in these two runs: TPOT p50 +90.3% (' in out
    assert "noise between restarts unknown" in out
    assert "worse here: in these runs, at 95%, corrected for all 4 rows that were tested" in out


def test_three_starts_may_be_better(capsys: pytest.CaptureFixture[str]) -> None:
    base, new = starts(Path("base"), 20.0, 20.2, 19.9), starts(Path("new"), 10.0, 10.1, 9.9)
    assert dispatch(["compare", base, new]) == 0
    out = capsys.readouterr().out
    (ttft,) = (line for line in out.splitlines() if line.startswith("TTFT mean"))
    assert ttft.endswith("better")
    assert "base  3 runs, VALID, base-0 to base-2  base" in out
    assert "rows that were tested (Holm)" in out


def test_significant_difference_is_visible_in_decimals(capsys: pytest.CaptureFixture[str]) -> None:
    base, new = (
        starts(Path("base"), 2000.0, 2000.01, 2000.02),
        starts(Path("new"), 2000.4, 2000.41, 2000.42),
    )
    assert dispatch(["compare", base, new]) == 0
    lines = capsys.readouterr().out.splitlines()
    (mean,) = (cells(line) for line in lines if line.startswith("TTFT mean"))
    assert mean == ["TTFT mean", "2000.0", "2000.4", "+0.02%", "+0.01% to +0.03%", "worse"]
    (throughput,) = (line for line in lines if line.startswith("req/s "))
    assert throughput.endswith("-5.5% to +5.8%  undecided")
    told = " ".join(line.strip() for line in lines)
    assert (
        "req/s to 5.00% (a request), latencies to at most 0.11% (the timing error of "
        "loadgen)." in told
    )
    assert "in every run: Output tokens/s, Total tokens/s (req/s), TTFO (TTFT), ITL (ICL)." in told


def test_environment_differences_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    one = saved(Path("a.json"), engine={"name": "vllm", "version": "0.11.0"})
    other = saved(Path("b.json"), ttft=21, engine={"name": "vllm", "version": "0.12.0"})
    dispatch(["compare", one, other])
    told = " ".join(capsys.readouterr().out.split())
    assert ". What differs: engine.version: 0.11.0 (a), 0.12.0 (b)" in told
    third = saved(
        Path("c.json"), ttft=21, engine={"name": "vllm", "version": "1", "tp": 2, "pp": 2}
    )
    dispatch(["compare", one, third])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[lines.index("What differs") :][1:3]] == [
        ["Setting", "a", "c"],
        ["engine.version", "0.11.0", "1"],
    ]


def test_control_characters_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    one = saved(Path("a.json"), engine={"name": "\x1b[31mred", "version": "1"})
    dispatch(["compare", one, saved(Path("b.json"), ttft=21)])
    assert "\x1b" not in capsys.readouterr().out


def test_json_has_unrounded_numbers(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["compare", *files, "--json", "--fail-if", "ttft_mean>+90%"]) == 10
    out, err = capsys.readouterr()
    told = json.loads(out)
    (ttft,) = (row for row in told["comparisons"][0]["rows"] if row["metric"] == "ttft_mean")
    assert (ttft["base"], ttft["side"], ttft["change"]) == pytest.approx((20.0, 25.0, 0.25))
    assert ttft["interval"] is ttft["basis"] is None
    assert [side["name"] for side in told["sides"]] == ["a", "b"]
    assert told["comparisons"][0]["word"] == "UNDECIDED"
    assert told["comparisons"][0]["answer"].startswith(
        'UNDECIDED: no significant difference between "a" and "b" | undecided: '
    )
    assert told["conditions"][0]["failed"] is None
    assert err.startswith("cannot tell ttft_mean>+90% (b)")


def test_pages_have_the_same_rows(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["compare", *files, "--markdown", "c.md", "--html", "c.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    firsts = [cells(line)[0] for line in lines]
    shown = [metric for metric in DEFAULT_METRICS if metric.title in firsts]
    page = Page(Path("c.html").read_text())
    terms = [text for tag, text in page.texts if tag == "dfn"]
    text = Path("c.md").read_text()
    assert text.startswith('# Comparison of "b" (b.json) with "a" (a.json)\n')
    assert ".svg" not in text
    assert len(shown) == 8
    for metric in shown:
        assert metric.title in terms
        assert f'| <abbr title="{metric.name}">{metric.title}</abbr> |' in text
    assert not any(
        name in ("src", "href") and "//" in (value or "") for _, name, value in page.attributes
    )


def test_every_form_has_one_answer(
    folders: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    pages = ["--markdown", "c.md", "--html", "c.html"]
    dispatch(["compare", *folders, *pages])
    *_, answer = lines = capsys.readouterr().out.splitlines()
    following = lines[lines.index(answer) + 1]
    assert following == 'next: stay with "c"; look for the cause in what is not recorded'
    dispatch(["compare", *folders, "--json"])
    (about,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert (about["answer"], about["word"]) == (answer, "SLOWER")
    texts = [text for _, text in Page(Path("c.html").read_text()).texts]
    assert Path("c.md").read_text().startswith('# Comparison of "d" with "c"\n')
    assert following in " ".join(texts).replace("next:  ", "next: ")
    for part in answer.split(" | "):
        assert part in " ".join(texts)
        assert part.replace("*", r"\*") in Path("c.md").read_text()


def test_better_stands_out_on_a_page() -> None:
    base, new = starts(Path("base"), 20.0, 20.2, 19.9), starts(Path("new"), 10.0, 10.1, 9.9)
    dispatch(["compare", base, new, "--markdown", "c.md", "--html", "c.html"])
    (ttft,) = (line for line in Path("c.md").read_text().splitlines() if "TTFT mean" in line)
    assert "| **better** |" in ttft
    page = Page(Path("c.html").read_text())
    assert ("span", "class", "good") in page.attributes


def test_gate_stands_before_the_numbers_of_a_page(folders: tuple[str, str]) -> None:
    conditions = ["--fail-if", "ttft_mean>+20%,tpot_p50>+90%"]
    pages = ["--markdown", "c.md", "--html", "c.html"]
    assert dispatch(["compare", *folders, *conditions, *pages]) == 8
    text = Path("c.md").read_text()
    assert text.index("> [!") < text.index("\n## Gate: FAILED\n") < text.index("TTFT mean")
    assert "| **FAILED** | `fail if ttft_mean>+20% (d)` | +25.0% is beyond the bound" in text
    assert "| **passed** | `fail if tpot_p50>+90% (d)` |" in text
    page = Path("c.html").read_text()
    assert ("h2", "Gate: FAILED") in Page(page).texts
    assert not any(unicodedata.category(letter) == "So" for letter in page + text)


def test_notes_are_alerts_of_github() -> None:
    one, other = saved(Path("a.json")), saved(Path("b.json"), ttft=25.0, verdict="INVALID")
    dispatch(["compare", one, other, "--markdown", "c.md"])
    text = Path("c.md").read_text()
    assert "> [!WARNING]\n" in text
    assert "!!!" not in text
    assert "???" not in text


def test_junit_has_a_case_for_each_condition(folders: tuple[str, str]) -> None:
    conditions = ["--fail-if", "ttft_mean>+20%", "--fail-if", "tpot_p50>+90%"]
    assert dispatch(["compare", *folders, *conditions, "--junit", "c.xml"]) == 8
    (suite,) = ElementTree.parse("c.xml").getroot()
    assert [(case.get("name"), case[0].tag) for case in suite] == [
        ("fail if ttft_mean>+20% (d)", "failure"),
        ("fail if tpot_p50>+90% (d)", "system-out"),
    ]
    invalid = saved(Path("c.json"), verdict="INVALID")
    assert dispatch(["compare", folders[0], invalid, *conditions, "--junit", "c.xml"]) == 10
    assert {case[0].tag for case in ElementTree.parse("c.xml").getroot()[0]} == {"error"}


def test_summary_of_a_step_has_the_comparison(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.md")
    dispatch(["compare", *files, "--fail-if", "ttft_mean>+20%", "--markdown", "c.md"])
    assert Path("step.md").read_text() == Path("c.md").read_text() + "\n"


# -- conditions and exit codes


@pytest.mark.parametrize(
    ("conditions", "code"),
    [(["ttft_mean>+20%"], 8), (["ttft_mean>+30%"], 0), (["ttft_mean>+30%", "tpot_p50>+20%"], 8)],
)
def test_failed_condition_exits_with_8(
    folders: tuple[str, str],
    conditions: list[str],
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = [word for each in conditions for word in ("--fail-if", each)]
    assert dispatch(["compare", *folders, *flags]) == code
    lines = capsys.readouterr().out.splitlines()[-len(conditions) :]
    assert [line.startswith("FAILED") for line in lines].count(True) == (code == 8)
    assert [line.split()[1] for line in lines] == conditions


def test_one_start_of_each_cannot_tell(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor can records, whose word is of these runs; failures are counted, and need no starts."""
    for sides in (files, (recorded(Path("r")), recorded(Path("s"), factor=2.0, seed=1))):
        assert dispatch(["compare", *sides, "--fail-if", "tpot_p50>+5%"]) == 10
        line = capsys.readouterr().out.splitlines()[-1]
        assert line.startswith("cannot tell tpot_p50>+5% (")
        assert line.endswith("; give 3 starts of each side, or --noise") or "unknown: give" in line
        assert dispatch(["compare", *sides, "--fail-if", "error_rate>+1pp"]) == 0


def test_conditions_on_invalid_runs_are_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = saved(Path("a.json")), saved(Path("b.json"), ttft=25.0, verdict="INVALID")
    assert dispatch(["compare", one, other, "--fail-if", "ttft_mean>+20%"]) == 10
    assert dispatch(["compare", one, other]) == 0
    assert "b.json: INVALID" in capsys.readouterr().out


def test_failed_requests_are_noted_and_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    one, dead = saved(Path("a.json")), saved(Path("dead.json"), ttft=19.0, error_rate=0.5633)
    assert dispatch(["compare", one, dead, "--fail-if", "ttft_p99>+5%", "--html", "c.html"]) == 10
    lines = capsys.readouterr().out.splitlines()
    lost = "dead.json: the server failed 56.3% of its requests; its latencies are those of the rest"
    assert lines.index("! Warnings") + 1 == lines.index(f"  - {lost}")
    assert lines[-1].startswith("cannot tell ttft_p99>+5% (dead): ")
    texts = [text for _, text in Page(Path("c.html").read_text()).texts]
    assert lost in texts
    assert dispatch(["compare", one, dead, "--fail-if", "ttft_p99>+5%,error_rate>+1pp"]) == 8


# -- noise


def test_noise_file_is_saved_and_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        dispatch(["compare", starts(Path("base"), 20.0, 20.2, 19.9), "--save-noise", "noise.json"])
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Standard deviation of one start of base (3 runs, VALID")
    assert any(line.split() == ["ttft_mean", "0.76%", "(2", "df)"] for line in lines)
    one, other = saved(Path("a.json")), saved(Path("b.json"), ttft=10.0)
    assert dispatch(["compare", one, other, "--noise", "noise.json"]) == 0
    (ttft,) = (
        line for line in capsys.readouterr().out.splitlines() if line.startswith("TTFT mean")
    )
    assert ttft.endswith("better")


# -- bad input


@pytest.mark.parametrize(
    ("words", "field", "remedy"),
    [
        (["a.json"], "", "a second one"),
        (["a.json", "none.json"], "", "none.json"),
        (["a.json", "a.json"], "", "same run"),
        (["a.json", "b.json", "--names", "base"], "--names", "a different name"),
        (["a.json", "b.json", "--names", "x,x"], "--names", "a different name"),
        (["a.json", "b.json", "--names", "x,"], "--names", "a different name"),
        (["a.json", "b.json", "--fail-if", "ttft>5%"], "--fail-if", "write one of"),
        (["a.json", "b.json", "--fail-if", "goodput<-5%"], "--fail-if", "leave it out"),
        (["a.json", "b.json", "--noise", "none.json"], "--noise", "--save-noise"),
        (["a.json", "b.json", "--noise", "a.json"], "--noise", "--save-noise"),
        (["a.json", "b.json", "--save-noise", "n.json"], "--save-noise", "leave out the others"),
        (["a.json", "--save-noise", "n.json", "--html", "c.html"], "--html", "leave one"),
        (["a.json", "--save-noise", "n.json"], "--save-noise", "3 or more"),
        (["a.json", "b.json", "--html", "none/c.html"], "--html", "choose another path"),
        (["a.json", "b.json", "--markdown", "."], "--markdown", "choose another path"),
        (["a.json", "b.json", "--html", "c.txt"], "--html", "FILE.html"),
        (["a.json", "b.json", "--markdown", "b.json"], "--markdown", "choose another path"),
        (
            ["a.json", "b.json", "--markdown", "x.html", "--html", "x.html"],
            "--html",
            "choose another path",
        ),
        (["a.json", "b.json", "--junit", "c.xml"], "--junit", "--fail-if"),
        (
            ["a.json", "b.json", "--junit", "none/c.xml", "--fail-if", "ttft_p99>1%"],
            "--junit",
            "choose another path",
        ),
        (
            ["a.json", "b.json", "--junit", "b.json", "--fail-if", "ttft_p99>1%"],
            "--junit",
            "choose another path",
        ),
        (["a.json", "--save-noise", "./a.json"], "--save-noise", "choose another path"),
        (["a.json", "c.json"], "", "--anyway"),
        (["a.json", "b.json", "--sides", "3"], "--sides", "--help"),
    ],
)
def test_bad_input_is_one_line(
    files: tuple[str, str],
    words: list[str],
    field: str,
    remedy: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    saved(Path("c.json"), ttft=21, settings=FEW.replace(request_rate=40.0))
    assert dispatch(["compare", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"loadgen compare: {field}: " if field else "loadgen compare: ")
    assert remedy in err


def test_anyway_warns_of_different_workloads(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    saved(Path("c.json"), ttft=21, settings=FEW.replace(request_rate=40.0))
    assert dispatch(["compare", "a.json", "c.json", "--anyway"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("! Warnings")
    assert lines[first + 1] == (
        "  - a.json and c.json have different workloads: --request-rate 20 and 40"
    )


def test_files_are_only_read(files: tuple[str, str]) -> None:
    before: dict[str, Any] = {name: Path(name).read_bytes() for name in files}
    dispatch(["compare", *files, "--json"])
    assert {name: Path(name).read_bytes() for name in files} == before
    assert sorted(path.name for path in Path().iterdir()) == ["a.json", "b.json"]
