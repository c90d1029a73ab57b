"""The terminal writer: the blocks of a page as lines that fit the terminal."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.document import (
    Answer,
    Block,
    Code,
    Colour,
    Document,
    Fact,
    Facts,
    Heading,
    Items,
    Note,
    Paragraph,
    Span,
    Table,
    Tone,
    cell,
    line,
    prose,
    terminal_writer,
)
from loadgen.document.terminal_writer import GAP, LEAST_WIDTH, text
from loadgen.util.terminal_text import Screen, display_width

LATENCIES = Table.of(
    ("Latency (ms)", "p50", "p99"),
    [("TTFT", "1.234", "10.50*"), ("E2EL ~", "215", "n/a")],
    text_columns=1,
)


def written(*blocks: Block, columns: int = 60) -> list[str]:
    """The lines of blocks."""
    return text(blocks, columns).splitlines()


def test_numbers_are_right_aligned_by_their_digits_and_words_left() -> None:
    assert written(LATENCIES) == [
        "Latency (ms)    p50    p99",
        "TTFT          1.234  10.50*",
        "E2EL ~          215    n/a",
    ]


def test_table_without_headings_has_no_empty_line() -> None:
    table = Table.of(("", ""), [("CPU time", "1.2 s"), ("lag", "p99 1 ms")], text_columns=1)
    assert written(table) == ["CPU time     1.2 s", "lag       p99 1 ms"]


def test_words_of_a_table_that_is_too_wide_are_wrapped() -> None:
    table = Table.of(("check", "value"), [("lag", "12 ms of 100 ms, because the machine is busy")])
    assert written(table, columns=34) == [
        "check  value",
        "lag    12 ms of 100 ms, because",
        "       the machine is busy",
    ]


def test_a_long_word_of_a_table_that_is_too_wide_is_not_broken() -> None:
    url = "http://a-server-of-a-long-name.example.org:8000/v1"
    table = Table.of(("target", "why"), [(url, "it is the one of the tests"), ("b", "c")])
    assert written(table, columns=30) == [
        f"{'target'.ljust(50)}  why",
        f"{url}  it is the",
        f"{'':50}  one of the",
        f"{'':50}  tests",
        f"{'b'.ljust(50)}  c",
    ]


def test_names_in_a_table_stay_whole_while_other_words_give_way() -> None:
    rows = [("request_throughput", "1000000", "no significant difference")]
    assert written(Table.of(("", "a", ""), rows, 1, remarks=True), columns=42) == [
        "                          a",
        "request_throughput  1000000  no",
        "                             significant",
        "                             difference",
    ]


def test_last_column_may_have_remarks_behind_numbers() -> None:
    table = Table.of(
        ("", "ms", ""), [("TTFT", "1.5", "worse"), ("TPOT", "10", "")], 1, remarks=True
    )
    assert written(table) == ["       ms", "TTFT  1.5  worse", "TPOT   10"]


def test_columns_of_numbers_that_do_not_fit_stand_below_with_the_names_again() -> None:
    table = Table.of(("rate", *"abcd"), [("1", *["1000000"] * 4)], text_columns=1)
    assert written(table, columns=24) == [
        "rate        a        b",
        "1     1000000  1000000",
        "rate        c        d",
        "1     1000000  1000000",
    ]


def test_items_stand_behind_a_dash_or_a_number_with_all_their_lines() -> None:
    item = cell("lag: 12 ms, limit 1 ms", line("-> ", "use another machine"))
    assert written(Items((item, line("b"))), columns=22) == [
        "- lag: 12 ms, limit 1",
        "    ms",
        "  -> use another",
        "    machine",
        "- b",
    ]
    assert written(Items.of(["a", "b"])) == ["- a", "- b"]
    assert written(Items((line("a"), line("b")), numbered=True)) == ["1. a", "2. b"]


def test_code_keeps_its_lines_and_code_in_prose_is_marked() -> None:
    assert written(Code("a   b\n\nc" + "x" * 80)) == ["a   b", "", "c" + "x" * 80]
    assert written(Paragraph(prose("run `loadgen doctor`"))) == ["run `loadgen doctor`"]
    code = Span("--rate 1", Tone.CODE)
    assert written(Table.of(("a",), [(code,)])) == ["a", "--rate 1"]


def test_notes_are_indented_and_warnings_are_marked() -> None:
    inner = Paragraph.of("one two three four five six")
    assert written(Note.fold("Checks", inner), columns=20) == [
        "Checks",
        "  one two three four",
        "      five six",
    ]
    assert written(Note("warning", "SIMULATED ENGINE", ())) == ["! SIMULATED ENGINE"]


def test_headings_notes_and_code_have_an_empty_line_around_them() -> None:
    blocks = (Heading(2, "Figures"), Paragraph.of("a"), Paragraph.of("b"), Note.fold("More"))
    assert written(*blocks) == ["Figures", "", "a", "b", "", "More"]


def test_facts_are_a_row_each() -> None:
    facts = Facts((Fact(Span("Requests"), "5 ok", "of 5"), Fact(Span("TTFT p50"), "20 ms")))
    assert written(facts) == ["Requests  5 ok   of 5", "TTFT p50  20 ms"]


def test_control_characters_never_reach_the_terminal() -> None:
    nasty = "a\x1b[31mb\u202e"
    blocks = (
        Heading(1, nasty),
        Paragraph.of(nasty),
        Items.of([nasty]),
        Code(nasty),
        Table.of((nasty,), [(nasty,)]),
        Facts((Fact(Span(nasty), nasty, nasty),)),
        Note("note", nasty, ()),
    )
    shown = text(blocks, 200)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.count("\\x1b[31m") == 10


@given(
    st.lists(st.lists(st.text("ab *~é中", max_size=30), min_size=3, max_size=3), max_size=4),
    st.sampled_from([None, 0, 1, 2]),
    st.integers(40, 120),
)
def test_rows_are_wider_than_the_terminal_only_where_two_columns_are(
    rows: list[list[str]], text_columns: int | None, columns: int
) -> None:
    table = Table.of(("one", "two", "three"), rows, text_columns)
    first, *others = map(least_width, zip(*[table.head, *rows], strict=True), table.numbers)
    for row in written(table, columns=columns):
        assert display_width(row) <= max(columns, first + len(GAP) + max(others))


def least_width(cells: Sequence[str], has_numbers: bool) -> int:
    """The columns without which words are broken, or a number and the place of its mark."""
    if has_numbers:
        return max(map(display_width, cells)) + 1
    words = [word for cell in cells for word in cell.split()]
    return max(LEAST_WIDTH, *map(display_width, words))


@pytest.mark.parametrize("columns", [60, 120])
def test_prose_fits_the_terminal(columns: int) -> None:
    blocks = (Paragraph.of("word " * 60), Items.of(["word " * 60]))
    assert max(map(len, written(*blocks, columns=columns))) <= columns


def test_a_report_longer_than_a_screen_ends_with_its_answer() -> None:
    found = Answer((("OK", Colour.GREEN), ("5 of 5", Colour.NONE)), "run `it` " * 20)
    rows = [Paragraph.of("row")] * (terminal_writer.SCREEN_LINES - 3)
    short = terminal_writer.report(Document("Title", tuple(rows), (found,))).splitlines()
    assert short[:3] == ["Title", "OK | 5 of 5", f"next: {'run `it` ' * 20}".rstrip()]
    assert short[-1] == "row"
    longer = Document("Title", (*rows, Paragraph.of("row")), (found,))
    assert terminal_writer.report(longer).splitlines()[-1] == "OK | 5 of 5"


def test_the_next_step_is_one_line_in_a_file_and_wrapped_on_a_terminal() -> None:
    document = Document("Title", (), (Answer((("OK", Colour.GREEN),), "run `it` " * 20),))
    assert len(terminal_writer.report(document).splitlines()) == 3
    assert len(terminal_writer.report(document, Screen(columns=60)).splitlines()) > 4
