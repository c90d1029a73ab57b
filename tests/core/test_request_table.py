"""The table of prepared requests: which row a request has, its record and its body."""

import os
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.record import Record
from loadgen.core.request_table import RequestTable

NO_FILE = -1


def extend(table: RequestTable, rows: Sequence[Sequence[int]]) -> None:
    """Add rows: end, input tokens, output tokens, server tokens, class, texts."""
    columns = zip(*rows, strict=True) if rows else [()] * 6
    table.extend(*(array("q", column) for column in columns))


def row(number: int) -> tuple[int, int, int, int, int, int]:
    """A row that is unlike the others."""
    return number, 10 + number, 20 + number, 30 + number, 40 + number, 50 + number


@pytest.fixture
def bodies(tmp_path: Path) -> Iterator[int]:
    """A file with the bodies "a", "" and "bcd"."""
    (tmp_path / "bodies").write_bytes(b"abcd")
    file = os.open(tmp_path / "bodies", os.O_RDONLY)
    yield file
    os.close(file)


def test_a_record_is_a_new_one_with_what_is_planned() -> None:
    table = RequestTable(NO_FILE)
    extend(table, [(0, 5, 6, 7, 2, 3)])
    record, plain = table.record(4, 1000), Record(4, 5, 6, 1000)
    plain.server_tokens, plain.class_number, plain.texts = 7, 2, 3
    for name in dir(plain):
        if not name.startswith("__") and not callable(getattr(plain, name)):
            assert getattr(record, name) == getattr(plain, name), name


def test_bodies_are_read_in_any_order_and_repeated(bodies: int) -> None:
    table = RequestTable(bodies)
    extend(table, [(1, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 0), (4, 0, 0, 0, 0, 0)])
    assert [table.body(index) for index in (2, 0, 1, 5, 3)] == [b"bcd", b"a", b"", b"bcd", b"a"]


def test_a_body_that_cannot_be_read_is_an_error_of_the_system() -> None:
    table = RequestTable(NO_FILE)
    extend(table, [(5, 0, 0, 0, 0, 0)])
    with pytest.raises(OSError, match="Bad file descriptor"):
        table.body(0)


def test_of_a_file_that_is_cut_off_what_is_there_is_read(bodies: int) -> None:
    table = RequestTable(bodies)
    extend(table, [(1, 0, 0, 0, 0, 0), (9, 0, 0, 0, 0, 0)])
    assert table.body(1) == b"bcd"


@given(
    st.lists(st.integers(0, 3), max_size=6),
    st.lists(st.integers(0, 30), max_size=20),
)
def test_a_request_has_the_row_that_a_list_that_grows_would_give_it(
    blocks: list[int], indexes: list[int]
) -> None:
    """A block of no rows ends the growth; then rows repeat."""
    rows = [row(0)]
    waiting = iter(blocks)
    table = RequestTable(NO_FILE)
    extend(table, rows)

    def add_rows() -> bool:
        added = [row(len(rows) + number) for number in range(next(waiting, 0))]
        rows.extend(added)
        extend(table, added)
        return bool(added)

    table.add_rows = add_rows
    for index in indexes:
        record = table.record(index, 5)
        expected = rows[index % len(rows)]
        assert table.row(index) == index % len(rows)
        assert table.tokens(index) == (record.input_tokens, record.output_tokens) == expected[1:3]
        assert (record.server_tokens, record.class_number, record.texts) == expected[3:]
        assert index < len(rows) or table.add_rows is None
    assert len(table) == len(rows)
    assert table.output_tokens == sum(tokens for _, _, tokens, _, _, _ in rows)


def test_unknown_plans_add_nothing_to_the_planned_tokens() -> None:
    table = RequestTable(NO_FILE)
    extend(table, [(0, 0, -1, 0, 0, 0), (0, 0, 5, 0, 0, 0)])
    assert table.output_tokens == 5


@pytest.mark.parametrize("index", [-1, 0, 7])
def test_a_request_that_has_no_row_is_refused(index: int) -> None:
    table = RequestTable(NO_FILE)
    with pytest.raises(IndexError):
        table.row(index)
    extend(table, [row(0)])
    with pytest.raises(IndexError):
        table.record(-1, 0)


@pytest.mark.parametrize("column", range(1, 6))
@pytest.mark.parametrize("count", [0, 1, 3])
def test_columns_that_are_not_equally_long_are_refused(column: int, count: int) -> None:
    table = RequestTable(NO_FILE)
    columns = [array("q", [1, 2]) for _ in range(6)]
    columns[column] = array("q", range(count))
    with pytest.raises(ValueError, match="2 numbers"):
        table.extend(*columns)
    assert (len(table), table.output_tokens) == (0, 0)
