"""`loadgen report`: a saved result as Markdown and JUnit, in a file or on stdout."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings
from loadgen.report import ci_summary, to_json
from loadgen.util.terminal_text import Screen
from tests.helpers import saved_json
from tests.helpers.run_facts import due_at, heading
from tests.helpers.saved_results import ran, sweep

RUN = ran(RunSettings(request_rate=10.0, slo="ttft_p99<25ms"))


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.json").write_text(to_json(RUN) + "\n")
    Path("two.json").write_text(f"{to_json(RUN)}\n{to_json(RUN)}\n")
    Path("sweep.json").write_text(to_json(sweep((1.0, 20.0, True))) + "\n")


@pytest.mark.parametrize("name", ["r.json", "sweep.json"])
def test_the_answer_ends_between_parts_on_a_terminal_and_the_next_step_between_words(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Screen, "of", lambda stream: Screen(columns=60))
    assert dispatch(["report", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("next: "))
    assert any(line.startswith("    ") for line in lines[begin - 1 : begin])
    assert max(map(len, lines[: begin + 1])) <= 60


def test_markdown_is_that_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["report", "r.json", "--markdown", "r.md"]) == 0
    assert capsys.readouterr().out == "Saved: r.md\n"
    assert Path("r.md").read_text() == ci_summary.markdown(saved_json.result(RUN))
    assert dispatch(["report", "r.json", "--markdown", "-"]) == 0
    assert capsys.readouterr().out == Path("r.md").read_text()


def test_markdown_has_a_part_for_each_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["report", "two.json", "sweep.json", "--markdown", "-"]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("# ")]
    assert titles == [
        *["# model org/tiny: 10 req/s"] * 2,
        "# Sweep over the request rate: model org/tiny",
    ]


def test_junit_has_a_suite_for_each_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["report", "two.json", "--junit", "-"]) == 0
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert [len(suite.findall("testcase")) for suite in root] == [3, 3]
    assert root.get("failures") == "2"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["r.json", "--markdown", "r.json"], "--markdown"),
        (["r.json", "--markdown", "none/r.md"], "--markdown"),
        (["r.json", "--junit", "none/r.xml"], "--junit"),
        (["r.json", "--junit", "r.xml", "--markdown", "r.md"], "--junit"),
        (["r.json", "--junit", "r.xml", "--csv", "r.csv"], "--junit"),
        (["r.json", "--markdown", "r.md", "--as", "vllm-0.11"], "--markdown"),
        (["sweep.json", "--junit", "r.xml"], "--junit"),
    ],
)
def test_bad_outputs_are_refused_in_one_line(
    words: list[str], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["report", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"loadgen report: {field}: ")
    assert err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["r.json", "sweep.json", "two.json"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["r.json", "--as", "aiperf"], "--as: r.json has no records; name a file that --records"),
        (["r.json", "--as", "agentx"], "--as: a submission of AgentX requires AIPerf's own idle"),
        (["r.json", "--as", "nobody"], "aiperf, inference-perf\n"),
        (["new.json"], "new.json is a result of schema 99, and this loadgen reads "),
        (["r.json", "gone.json", "--csv", "-"], "gone.json: No such file"),
        (["cut.jsonl", "--csv", "-"], "cut.jsonl: line 2 is no part of a file of records"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_printed(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("new.json").write_text(to_json(RUN | {"loadgen": RUN["loadgen"] | {"schema": 99}}) + "\n")
    first = {"loadgen_records": 2, "start_ns": 0, "scheduled": 1}
    heading_of_run = heading(RunSettings().checked(), due_at(0)).to_dict()
    Path("cut.jsonl").write_text(to_json(first | {"heading": heading_of_run}) + "\n{}\n")
    assert dispatch(["report", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
