"""Pages that loadgen makes pass its own audit: nothing in them is inconsistent."""

from pathlib import Path

import pytest

from loadgen.lab.audit import Finding, audit
from tests.helpers import imported_files, study_reports
from tests.helpers.audited_pages import PAGES
from tests.helpers.source import ROOT
from tests.helpers.thinning import thinned

STUDIES = sorted(
    path.stem
    for path in (ROOT / "examples" / "studies").glob("*.yaml")
    if (PAGES / f"{path.stem}.md").is_file()
)


def inconsistent(text: str, folder: Path) -> list[Finding]:
    path = folder / "page.md"
    path.write_text(text)
    return [finding for finding in audit(str(path)) if not finding.note]


def test_the_study_of_a_real_engine_that_the_documentation_shows_is_consistent() -> None:
    page = ROOT / "docs" / "llamacpp-study" / "llamacpp.md"
    assert [finding for finding in audit(str(page)) if not finding.note] == []


@pytest.mark.integration
@pytest.mark.parametrize("starts", [2, 3])
def test_a_report_of_means_beside_the_block_of_one_start_has_no_finding(
    starts: int, tmp_path: Path
) -> None:
    repeats = {"least": starts, "most": starts}
    text = study_reports.written(study_reports.found(decision={"repeats": repeats}), tmp_path)[
        "small.md"
    ]
    assert f"median of {starts} starts" in text
    (tmp_path / "page.md").write_text(text)
    rules = {finding.rule for finding in audit(str(tmp_path / "page.md"))}
    assert rules.isdisjoint({"result-line", "cell", "unreported", "gain"})


@pytest.mark.integration
@pytest.mark.parametrize("page", thinned(STUDIES, 5))
def test_a_report_of_a_page_that_was_imported_is_consistent(page: str, tmp_path: Path) -> None:
    assert len(STUDIES) == 5
    text = study_reports.written(
        imported_files.page(page).findings, tmp_path, {"source": "import"}
    )[f"{page}.md"]
    assert inconsistent(text, tmp_path) == []
