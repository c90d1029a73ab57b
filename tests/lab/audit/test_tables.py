"""Tables are read cell by cell, also where their rows share a line."""

import pytest

from loadgen.lab.audit.table import cell, tables

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
