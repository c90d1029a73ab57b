"""Terminal: text of others made safe to show, and as much of it as there is room for."""

import bisect
import re
import unicodedata
from collections.abc import Iterator
from itertools import accumulate

MARK = " ..."  # behind what is cut; a terminal that knows ASCII alone has it too
MOST_SHOWN = 400  # characters that are looked at of a text that may be cut
_ASCII = re.compile("[ -~]*")


def printable(text: str) -> str:
    """`text` on one line, with escapes such as \\x1b in the place of everything that a terminal might obey or hide.

    That is: control characters (C0, C1, line ends), bidirectional and other invisible format characters, separators,
    and what is no character at all.
    """
    if _ASCII.fullmatch(text):
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """As `printable`, of a text that may have lines."""
    return "\n".join(map(printable, text.split("\n")))


def columns(text: str) -> int:
    """How many columns a printable text takes at most: two for each wide character."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def fitting(text: str, room: int) -> str:
    """As much of a printable text as `room` columns hold."""
    return text[: bisect.bisect_right(list(accumulate(map(_columns_of, text))), room)]


def cut(text: str, room: int) -> str:
    """As much of a text as `room` columns hold, safe to show: whole words where there are any, and MARK behind them."""
    whole = printable(text[:MOST_SHOWN])
    if len(text) <= MOST_SHOWN and columns(whole) <= room:
        return whole
    return (_words(whole, room - len(MARK)).rstrip() + MARK).lstrip()


def wrapped(text: str, room: int) -> Iterator[str]:
    """A printable text in lines of `room` columns, broken between words where there are any."""
    while text:
        line = _words(text, room) or text[0]
        yield line.rstrip()
        text = text[len(line) :].lstrip()


def _words(text: str, room: int) -> str:
    """As `fitting`, but for the beginning of a word, unless it is the first."""
    first = fitting(text, room)
    if first == text or text[len(first)] == " ":
        return first
    return first.rpartition(" ")[0] or first


def _columns_of(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
