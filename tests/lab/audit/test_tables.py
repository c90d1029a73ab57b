"""Tables are read cell by cell, also where their rows share a line."""

from pathlib import Path

import pytest

from loadgen.lab.audit.page import Page
from loadgen.lab.audit.table import cell, tables
from tests.helpers.audited_pages import found, only, rules

LINES = """\
| Case | baseline | Optimized |
|------|:--------:|-----------|
| **A** | Total TPS: 1.00<br>Mean TPOT(ms): 2.00 | Total TPS: 3.00 <span style="color:#fbcaca;">(-5.0%)</span> |
| B b | 4.0 | 5.0 |
"""  # noqa: E501


@pytest.mark.parametrize("text", [LINES, "### T " + " ".join(LINES.split("\n")) + " and more"])
def test_rows_have_a_name_and_cells(text: str) -> None:
    (table,) = tables(text)
    assert (table.columns, table.baseline) == (("baseline", "Optimized"), 0)
    assert [row.name for row in table.rows] == ["A", "B b"]
    before, after = table.rows[0].cells
    assert [(q.name, q.text) for q in before.quantities] == [
        ("total_per_s", "1.00"),
        ("mean_tpot_ms", "2.00"),
    ]
    (total,) = after.quantities
    assert total.change is not None
    assert (total.change.text, text[total.at :][:4], text[total.change.at :][:5]) == (
        "-5.0%",
        "3.00",
        "-5.0%",
    )
    assert [q.text for c in table.rows[1].cells for q in c.quantities] == ["4.0", "5.0"]


def test_pairs_are_of_a_baseline_and_another_column() -> None:
    (table,) = tables(LINES)
    assert [(row.name, column) for row, _, _, column in table.pairs()] == [
        ("A", "Optimized"),
        ("B b", "Optimized"),
    ]
    (other,) = tables(LINES.replace("baseline", "before"))
    assert list(other.pairs()) == []


def test_quantity_with_a_factor_is_multiplied() -> None:
    (total,) = cell("Total TPS: 3019.19x2 (+59.2%)", 0).quantities
    assert (total.text, total.times, total.whole.value) == ("3019.19", 2, 6038.38)
    (bare,) = cell("600.00 x 2", 0).quantities
    assert (bare.name, bare.whole.value) == ("", 1200.0)


def test_a_change_belongs_to_the_quantity_before_it_and_the_first_counts() -> None:
    (total,) = cell("Total TPS: 1.00 (+2.0%, lower than +3.0% before)", 0).quantities
    assert total.change is not None
    assert total.change.text == "+2.0%"


def test_a_change_alone_is_the_cells_own() -> None:
    found = cell(' <span style="background-color:lightgreen;">+18.7%</span> ', 0)
    assert found.quantities == ()
    assert found.change is not None
    assert found.change.ratio.value == pytest.approx(1.187)
    assert cell("-", 0).change is None


def test_rows_with_the_same_first_cell_are_named_by_the_next_column_of_texts() -> None:
    text = (
        "| Case | Group | Optimized |\n|---|---|---|\n| Chat | Cache | 3.2s |\n| Chat | Batch "
        "512 | 3.1s |\n"
    )
    (table,) = tables(text)
    assert [row.name for row in table.rows] == ["Cache", "Batch 512"]


# -- results that tables print

ROWS = """\
| max concurrency | success | duration (s) | request tput (req/s) | TTFT mean (ms) | E2EL (s) |
|---|--:|--:|--:|--:|--:|
| 4 | 10 / 10 | 10.00 | 1.00 | 100.0 | 2.50 |
| 2 | 10 / 10 | 10.00 | 1.00 | 100.0 | 2.50 |
"""
HTML = (
    "<table><tr><th></th><th>A</th><th>B</th></tr><tr><td>Mean TTFT (ms)</td><td>9.0</td>"
    "<td>8.0</td></tr><tr><td>Mean E2EL (ms)</td><td>8.5</td><td>80</td></tr></table>"
)


def test_each_row_of_numbers_is_a_result(tmp_path: Path) -> None:
    first, second = Page("page.md", ROWS).measured
    names = ["cap", "ok", "duration_s", "requests_per_s", "mean_ttft_ms", "mean_e2el_ms"]
    assert list(first.numbers) == names
    assert [number.value for number in first.numbers.values()] == [4, 10, 10, 1, 100, 2500]
    finding = only(found(tmp_path, ROWS), "in-flight")
    assert (finding.says, finding.place.line) == ("mean E2EL 2500 ms", 4)
    assert second.title == "2"


def test_columns_are_results_where_rows_name_numbers_in_html_too(tmp_path: Path) -> None:
    finding = only(found(tmp_path, HTML), "latency-bounds")
    assert (finding.says, finding.should_be) == ("mean TTFT 9 ms", "at most 8.50 ms")


def test_a_table_of_other_things_has_no_result() -> None:
    assert Page("page.md", "| Flag | TTFT (ms) |\n|---|---|\n| a | 1-2 |\n").measured == []
    assert Page("page.md", "| A | B |\n|---|---|\n| 1 | 2 |\n").measured == []


def test_a_change_of_a_row_is_that_over_the_first(tmp_path: Path) -> None:
    text = "| | req/s |\n|---|---|\n| a | 10.0 |\n| b | 12.0 (+20%) |\n| c | 10.1 ({}) |\n"
    assert rules(found(tmp_path, text.format("+1%"))) == set()
    assert rules(found(tmp_path, text.format("-16%"))) == set()  # over the row above
    finding = only(found(tmp_path, text.format("+5%")), "percent")
    assert (finding.says, finding.should_be) == ("+5%", "+1.00%")
