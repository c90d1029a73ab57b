"""Descriptions of tools: what they say, how commands are made of them, and how figures are read."""

import re
from pathlib import Path

import msgspec
import pytest

from loadgen.errors import BadInput
from loadgen.lab.judge import tool
from loadgen.lab.judge.case import Load
from loadgen.lab.judge.tool import Task, Tool, built_in
from tests.helpers.source import ROOT

RECORDED = ROOT / "tests" / "qa" / "peers" / "recorded"
LOAD = Load(count=370, rate=37, input_tokens=61, output_tokens=53)
CONSOLE = "Tokens: 1,234\nWARNING slow\nWARNING slow\nWARNING odd\n"


def task(folder: Path, load: Load = LOAD) -> Task:
    return Task("http://127.0.0.1:18123", "m", folder / "tokenizer", folder, load)


def described(**fields: object) -> Tool:
    whole = {"name": "t", "begins": ["t"], "flags": [], "figures": {}} | fields
    return msgspec.convert(whole, Tool)


@pytest.mark.parametrize("name", built_in())
def test_a_command_has_the_server_the_load_and_no_open_placeholder(
    name: str, tmp_path: Path
) -> None:
    each = built_in()[name]
    load = LOAD if each.open else Load(370, float("inf"), 37, 61, 53)
    words = tool.command_line(each, ["program"], task(tmp_path, load))
    written = "".join(path.read_text() for path in tmp_path.glob("*.yml"))
    told = f"{' '.join(words)} {written}"
    assert "18123" in told
    assert "{" not in " ".join(words)
    assert {"37", "53"} <= set(re.findall(r"\d+", told))
    assert "370" in told or '"duration": 10' in told


@pytest.mark.parametrize("name", built_in())
def test_a_tool_is_recognized_by_its_first_words(name: str) -> None:
    tools = built_in()
    begins = [f"/some/where/{tools[name].begins[0]}", *tools[name].begins[1:]]
    assert tool.recognized(["python", "-m", *begins], tools) == tools[name]


def test_an_unknown_command_names_the_remedy() -> None:
    with pytest.raises(BadInput, match=r"begins like no known tool.*--tool FILE\.yaml"):
        tool.recognized(["mine.py", "--fast"], built_in())


def test_figures_are_read_at_their_places(tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text(
        '{"rows": [{"at": "50%", "s": 0.02}, {"at": "99%", "s": 0.05}], "mean": 2.5, "none": null}'
    )
    each = described(
        result="out.json",
        figures={
            "ttft_p99_ms": {"path": ["rows", {"at": "99%"}, "s"], "times": 1000},
            "output_tokens": {"pattern": "^Tokens: (.+)$"},
            "completed": {"path": ["mean"], "by": "output_tokens"},
            "failed": {"path": ["none"]},
            "input_tokens": {"path": ["rows", 7]},
        },
        says=[{"pattern": "WARNING (.*)"}],
    )
    printed = tool.read(each, tmp_path, CONSOLE)
    assert printed.figures == {"ttft_p99_ms": 50, "output_tokens": 1234, "completed": 2.5 * 1234}
    assert printed.says == ("slow", "odd")


def test_a_report_on_the_console_is_its_last_line_of_json() -> None:
    each = described(figures={"completed": {"path": ["n"]}})
    assert tool.read(each, Path(), 'starting\n{"n": 1}\n{"n": 2}\n').figures == {"completed": 2}


def test_what_is_not_there_is_not_printed(tmp_path: Path) -> None:
    each = described(result="no.json", figures={"completed": {"path": ["n"]}})
    assert tool.read(each, tmp_path, "").figures == {}


@pytest.mark.parametrize("name", ["vllm", "guidellm", "aiperf", "inference-perf", "evalscope"])
def test_a_recorded_report_has_its_times_in_ms(name: str) -> None:
    printed = tool.read(built_in()[name], RECORDED / name, "")
    assert printed.figures["output_tokens"] in (1000, 2000)
    assert 20 < printed.figures["ttft_p50_ms"] < printed.figures["ttft_p99_ms"] < 60
    assert 19 < printed.figures["tpot_p50_ms"] < 21


def test_a_figure_that_no_case_knows_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: t\nbegins: [t]\nflags: []\nfigures: {speed: {path: [n]}}\n")
    with pytest.raises(BadInput, match="unknown figure 'speed'; figures are completed"):
        tool.load_tool(file)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('flags: ["{ur}"]', "unknown placeholder {ur}; known are {url}, {port}, {model}"),
        ('flags: []\nopen: ["--at={speed}"]', "unknown placeholder {speed}"),
        ('flags: []\nfiles: {a.json: {"at": "{ur}"}}', "unknown placeholder {ur}"),
        ('flags: []\nmachine: "("', "'(' is no regular expression (missing )"),
        ('flags: []\nsays: [{pattern: "[a"}]', "'[a' is no regular expression"),
        ('flags: []\nsays: [{pattern: "a"}]', "'a' has 0 groups; put what is to be read"),
        ('flags: []\nsays: [{pattern: "(a)(b)"}]', "'(a)(b)' has 2 groups"),
        ("flags: []\nsays: [{}]", "says has no place, or two; give a path in JSON, or a pattern"),
        ('flags: []\nresult: "{folder}/r.json"', "'{folder}/r.json' is a path; name it without"),
        ("flags: []\nresult: /tmp/r.json", "'/tmp/r.json' is a path"),
        ("flags: []\napi: speech", "unknown api 'speech'; it is chat or completions"),
        ("flags: []\nfigures: {}", "no figures; figures are completed, failed"),
        ("flags: []\nfigures: {sent: {path: [n]}}", "unknown figure 'sent'"),
        (
            "flags: []\nfigures: {completed: {path: [n], by: failed}}",
            "completed is multiplied by 'failed'; name a figure that stands above it",
        ),
        ("speed: 1", "Object contains unknown field `speed`; docs/judge.md has an example"),
    ],
)
def test_a_wrong_description_is_refused_in_one_line(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "mine.yaml"
    figures = "" if "figures:" in line else "figures: {completed: {path: [n]}}\n"
    file.write_text(f"name: t\nbegins: [t]\n{figures}{line}\n")
    with pytest.raises(BadInput) as refused:
        tool.load_tool(file)
    assert said in str(refused.value)
    assert "mine.yaml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.yaml cannot be read \(No such file or directory\)"):
        tool.load_tool(tmp_path / "none.yaml")


def test_a_product_needs_its_other_figure() -> None:
    each = described(figures={"completed": {"path": ["n"], "by": "output_tokens"}})
    assert tool.read(each, Path(), '{"n": 2}').figures == {}
