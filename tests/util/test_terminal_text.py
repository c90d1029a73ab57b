"""Text for a terminal, and log messages on stderr."""

import logging
import sys

import pytest

from loadgen.util.terminal_text import ToStderr, display_width, fit_width, truncate, wrap

WIDE = "中文字"


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("plain", 5), (WIDE, 6), ("a中", 3), ("é━…", 3)]
)
def test_a_wide_character_takes_two_columns(text: str, count: int) -> None:
    assert display_width(text) == count


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [("plain", 5, "plain"), ("plain", 3, "pla"), (WIDE, 5, "中文"), (WIDE, 1, ""), ("", 0, "")],
)
def test_fit_width_keeps_the_beginning_and_splits_no_character(
    text: str, room: int, shown: str
) -> None:
    assert fit_width(text, room) == shown


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("short", 5, "short"),
        ("longer", 5, "l ..."),
        ("two words", 8, "two ..."),
        ("two words", 7, "two ..."),
        ("two words", 6, "tw ..."),
        (WIDE, 6, WIDE),
        (WIDE * 2, 7, "中 ..."),
        (WIDE, 5, "..."),
        ("a\nb", 4, "a\\nb"),
    ],
)
def test_truncate_cuts_between_words(text: str, room: int, shown: str) -> None:
    assert truncate(text, room) == shown


def test_a_text_that_is_only_looked_at_in_part_is_marked_too() -> None:
    assert truncate("a" * 500, 1000) == "a" * 400 + " ..."


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 80, ["one two three"]),
        ("unbroken", 3, ["unb", "rok", "en"]),
        (WIDE, 4, ["中文", "字"]),
        ("", 4, []),
    ],
)
def test_a_text_is_wrapped_between_words_where_there_are_any(
    text: str, room: int, lines: list[str]
) -> None:
    assert list(wrap(text, room)) == lines


@pytest.mark.parametrize("room", range(1, 12))
def test_wrap_keeps_all_text(room: int) -> None:
    text = "a 中文字 of words, some-long ones 中"
    assert "".join(wrap(text, room)).replace(" ", "") == text.replace(" ", "")


def test_a_log_goes_to_what_is_stderr_when_it_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = ToStderr()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    monkeypatch.setattr(sys, "stderr", sys.stdout)  # as a view does that puts lines above itself
    handler.emit(
        logging.LogRecord("loadgen", logging.WARNING, "", 0, "said \x1b[2J%s", ("twice",), None)
    )
    assert capsys.readouterr() == ("WARNING: said \\x1b[2Jtwice\n", "")
