"""The five pages of the performance lab, imported and reported with the true percentages."""

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from loadgen.lab.study import report
from loadgen.lab.study.execute import conductor
from loadgen.lab.study.execute.store import Store
from loadgen.lab.study.spec import study_file
from tests.helpers.imported_files import PAGES, STUDIES, take
from tests.helpers.thinning import thinned
from tests.lab.importer.test_published import (
    GOLDEN,
    QWEN_9B,
    QWEN_14B,
    QWEN_30B,
    QWEN_32B,
    QWEN_235B,
)


@cache
def written(name: str) -> str:
    """The report of a page's store, in Markdown, without what colours it."""
    with TemporaryDirectory() as folder:
        study = study_file.read(STUDIES / f"{name}.yaml")
        take(study, Path(folder) / "store", str(PAGES / f"{name}.md"))
        with Store.open(Path(folder) / "store") as store:
            findings, facts = conductor.load_findings(store)
        (page,) = (
            path
            for path in report.write(
                findings, facts, Path(folder) / "store", Path(folder) / "report"
            )
            if path.suffix == ".md"
        )
        return re.sub(r"<span[^>]*>|</span>", "", page.read_text())


def rows(name: str, cell: str) -> list[str]:
    """Lines of tables and summaries in which something is named."""
    return [line for line in written(name).splitlines() if cell in line and "%" in line]


@pytest.mark.slow
@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}-{row[3]}")
def test_report_has_the_derived_throughput_and_percentage(row: tuple) -> None:
    name, step, of, workload, expected, beside_reference, _ = row
    named = rows(name, f"**{workload}**" if step == "confirmation" else of)
    assert any(f"{expected:.2f}" in line and f"{beside_reference}%" in line for line in named), (
        named
    )


@pytest.mark.integration
@pytest.mark.parametrize("name", thinned([QWEN_9B, QWEN_14B, QWEN_30B, QWEN_32B, QWEN_235B], 5))
def test_a_report_of_published_results_claims_no_more_than_it_knows(name: str) -> None:
    assert "one run of each arm" in written(name)
    assert "single runs" in written(name)
    assert "Confirmed by fresh starts" not in written(name)
    assert not re.search(r"%; [+-][\d.]+% to ", written(name))


@pytest.mark.parametrize(
    ("name", "wrong"),
    thinned(
        [
            (QWEN_9B, "34.63"),
            (QWEN_9B, "+15.59%"),
            (QWEN_9B, "34,751,436"),
            (QWEN_32B, "-13.8"),
            (QWEN_14B, "8424.86"),
        ],
        5,
    ),
)
def test_wrong_value_of_a_page_is_not_in_its_report(name: str, wrong: str) -> None:
    assert wrong not in written(name)
