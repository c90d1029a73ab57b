"""The table: what becomes of a row, and how it gets into the document."""

from pathlib import Path

import pytest

from bench.accuracy.table import Row, Table, markdown, text
from tests.helpers.documents import between

MET = Row("Test", "a load", "1 ms", "2 ms", met=True)
MISSED = Row("Test", "a load", "3 ms", "2 ms", met=False)
BEGIN, END = "<!-- table -->", "<!-- end -->"
DISTURBED = Row("Test", "a load", "3 ms", "2 ms", met=False, disturbance="a neighbour")


def test_a_row_within_its_bound_passes_whatever_disturbed_it() -> None:
    table = Table()
    table.add(MET)
    table.add(Row("Test", "a load", "1 ms", "2 ms", met=True, disturbance="a neighbour"))
    assert [row.verdict for row in table.rows] == ["met", "met"]


def test_a_miss_fails_the_test_and_stands_in_the_table() -> None:
    table = Table()
    with pytest.raises(AssertionError, match="measured 3 ms, allowed 2 ms"):
        table.add(MISSED)
    assert "MISSED" in text(table.rows)


def test_a_miss_that_others_caused_is_not_judged_and_says_who() -> None:
    table = Table()
    with pytest.raises(pytest.skip.Exception, match="a neighbour"):
        table.add(DISTURBED)
    assert "not judged: a neighbour" in text(table.rows)


def test_writing_replaces_the_table_between_the_marks_alone(tmp_path: Path) -> None:
    document, table = tmp_path / "page.md", Table()
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    table.add(MET)
    for _ in range(2):
        between(document, BEGIN, markdown(table.rows), END)
    written = document.read_text()
    assert written.startswith(f"before\n{BEGIN}\n")
    assert written.endswith(f"{END}\nafter\n")
    assert "old" not in written
    assert written.count("| Test | a load | 1 ms | 2 ms | met |") == 1


def test_rows_that_were_not_measured_again_stay() -> None:
    other = Row("Test", "a|b", "5 ms", "6 ms", met=True, when="long ago")
    before = markdown([other, MISSED])
    after = markdown([MET], before)
    assert after.count("long ago") == 1
    assert "MISSED" not in after
    assert [line.split(" | ")[1] for line in after.splitlines()[2:]] == ["a\\|b", "a load"]
    assert markdown([], after) == after


def test_a_document_without_marks_is_left_alone(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("words")
    with pytest.raises(ValueError, match="has no lines"):
        between(document, BEGIN, "a table", END)
    assert document.read_text() == "words"
