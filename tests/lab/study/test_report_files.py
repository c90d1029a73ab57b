"""Reports of whole studies in both formats; every number follows from the summaries."""

import re
from pathlib import Path

import msgspec
import pytest

from loadgen.errors import BadInput
from loadgen.lab.study.execute.findings import Findings
from loadgen.lab.study.report import write
from tests.helpers import study_reports
from tests.helpers.html_page import Page
from tests.helpers.source import ROOT
from tests.helpers.study_reports import found, written

GOLDEN = ROOT / "tests" / "lab" / "study" / "golden"


@pytest.fixture(scope="module")
def study() -> Findings:
    return found()


@pytest.mark.parametrize("layout", ["stages", "groups"])
def test_a_report_line_by_line(layout: str, tmp_path: Path) -> None:
    findings = found(report={"layout": layout, "title": "Optimizing Qwen3-8B on a box"})
    study_reports.keep(findings, tmp_path)
    texts = written(
        findings,
        tmp_path,
        {"source": "run", "loadgen": "0.1.0", "host": {"name": "a", "gpus": ["b", "c"]}},
    )
    assert texts["small.md"] == (GOLDEN / f"{layout}.md").read_text()


@pytest.mark.slow
def test_the_same_study_gives_the_same_bytes(study: Findings, tmp_path: Path) -> None:
    study_reports.keep(study, tmp_path)
    first, second = (
        {path.name: path.read_bytes() for path in write(study, {}, tmp_path, tmp_path / name)}
        for name in "ab"
    )
    assert first == second
    pictures = {f"{name}.svg" for name in ("cases", "waterfall", "latencies", "pareto", "noise")}
    assert set(first) == {"small.md", "small.html", "reproduce.sh"} | pictures


def test_percentages_come_from_unrounded_values(tmp_path: Path) -> None:
    came = {"baseline": 10.004, "fp8": 12.3437, "quantization/fp8": 12.3437}
    findings = found(lambda request: came[request.arm], stages=study_reports.STAGES[:1])
    row = next(
        row
        for row in written(findings, tmp_path)["small.md"].splitlines()
        if row.startswith("| **short** |")
    )
    # Four of them fit into the box: 40.016 and 49.3748. Their ratio is 1.23388, that of what is
    # shown 1.23363.
    assert "Total TPS: 40.02 (est.)" in row
    assert "Total TPS: 49.37 (est.)" in row
    assert "(+23.39%; +23.39% to +23.39%)" in row


def test_a_difference_is_of_starts_in_the_same_blocks(tmp_path: Path) -> None:
    # geometric means: 12500 / 10000 in both blocks, though blocks differ by 10 %
    levels = {0: 1.0, 1: 1.1}
    findings = found(
        lambda request: (
            10000.0 * levels.get(request.block, 1.0) * (1.25 if "fp8" in request.arm else 1.0)
        ),
        stages=study_reports.STAGES[:1],
    )
    assert "+25.00% (" in written(findings, tmp_path)["small.md"]


def test_html_page_is_complete_and_loads_no_resource(study: Findings, tmp_path: Path) -> None:
    study_reports.keep(study, tmp_path)
    text = written(study, tmp_path)["small.html"]
    page = Page(text)
    loads = [value or "" for _, name, value in page.attributes if name in ("src", "href")]
    assert all(value.startswith("#") for value in loads)
    assert text.count("<svg ") == 2 * 5  # for wide and for narrow screens
    anchors = {value for _, name, value in page.attributes if name == "id"}
    assert {value[1:] for value in loads if value.startswith("#")} <= anchors
    for harmless in (
        "http://127.0.0.1:8000",
        "http://www.w3.org/2000/svg",
    ):  # a shown command, a namespace
        text = text.replace(harmless, "")
    assert not re.search(r"https?://|@import|<script[^>]* src|<link", text)


def test_formats_that_are_not_wanted_are_not_written(tmp_path: Path) -> None:
    findings = found(report={"formats": ["markdown"]})
    paths = write(findings, {}, tmp_path, tmp_path / "report")
    assert {path.name for path in paths if path.parent.name != "charts"} == {
        "small.md",
        "reproduce.sh",
    }


def test_pictures_are_files_only_beside_a_page_that_does_not_have_them_in_it(
    tmp_path: Path,
) -> None:
    written(found(report={"formats": ["html"]}), tmp_path)
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == [
        "reproduce.sh",
        "small.html",
    ]


def test_a_study_s_name_is_no_path(tmp_path: Path) -> None:
    findings = found(stages=study_reports.STAGES[:1])
    renamed = msgspec.structs.replace(findings.study, name="../a b\\c")
    texts = written(Findings(renamed, findings.steps), tmp_path)
    assert set(texts) == {"a-b-c.md", "a-b-c.html", "reproduce.sh"}


def test_without_whole_results_there_are_no_latencies(study: Findings, tmp_path: Path) -> None:
    assert "## Latencies" not in written(study, tmp_path)["small.md"]


def test_a_file_in_the_place_of_its_folder_is_refused_before_anything_is_drawn(
    study: Findings, tmp_path: Path
) -> None:
    (tmp_path / "a file").write_text("mine")
    with pytest.raises(BadInput) as refused:
        write(study, {}, tmp_path, tmp_path / "a file")
    problem = f"{tmp_path}/a file is not a folder; name a folder, or a path that does not exist"
    assert str(refused.value) == f"--output: {problem}"
    assert (tmp_path / "a file").read_text() == "mine"
