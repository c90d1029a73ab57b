"""Text for a terminal: escape control characters of untrusted text, measure its width, truncate and
wrap it.

Log messages are written to stderr in the same way.
"""

import bisect
import logging
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator
from itertools import accumulate
from typing import Self, TextIO

from msgspec import Struct

ELLIPSIS = " ..."  # ASCII, which every terminal can show
MAX_SCANNED = 400  # characters that `truncate` looks at
_ASCII = re.compile("[ -~]*")


def printable(text: str) -> str:
    """Return text on one line, with escapes such as \\x1b for all characters that a terminal may
    interpret or hide.

    These are control characters (C0, C1, line ends), bidirectional and other invisible format
    characters, separators, and code points that are no characters.
    """
    if _ASCII.fullmatch(text):
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def has_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal, whose user wants colours (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Screen(Struct, frozen=True):
    """Where a text is shown; by default in a file, as it is.

    Attributes:
        has_colours: Whether it shows colours.
        columns: How wide it is; None: a line may have any length.
    """

    has_colours: bool = False
    columns: int | None = None

    @classmethod
    def of(cls, stream: TextIO) -> Self:
        """Describe the terminal of a stream, if it has one."""
        return cls(
            has_colours(stream), shutil.get_terminal_size().columns if stream.isatty() else None
        )


PLAIN = Screen()


def printable_lines(text: str) -> str:
    """Apply `printable` to each line of a text."""
    return "\n".join(map(printable, text.split("\n")))


def display_width(text: str) -> int:
    """Return the columns that a printable text takes: two for each wide character."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def fit_width(text: str, room: int) -> str:
    """Return the beginning of a printable text that fits into `room` columns."""
    if text.isascii():
        return text[: max(0, room)]
    return text[: bisect.bisect_right(list(accumulate(map(_character_width, text))), room)]


def truncate(text: str, room: int) -> str:
    """Return the beginning of any text in `room` columns, printable, cut between words and with
    an ellipsis.
    """
    shown = printable(text[:MAX_SCANNED])
    if len(text) <= MAX_SCANNED and display_width(shown) <= room:
        return shown
    return (_fit_words(shown, room - len(ELLIPSIS)).rstrip() + ELLIPSIS).lstrip()


def wrap(text: str, room: int, indent: str = "") -> Iterator[str]:
    """Yield the lines of a printable text wrapped to `room` columns, between words where possible.

    Args:
        text: The text.
        room: The columns.
        indent: What each line but the first begins with.
    """
    before = ""
    while text:
        line = _fit_words(text, room - len(before)) or text[0]
        yield before + line.rstrip()
        text, before = text[len(line) :].lstrip(), indent


def _fit_words(text: str, room: int) -> str:
    """Apply `fit_width`, and drop a word that does not fit whole, unless it is the first."""
    first = fit_width(text, room)
    if first == text or text[len(first)] == " ":
        return first
    return first.rpartition(" ")[0] or first


def _character_width(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class ToStderr(logging.Handler):
    """Writes to the current `sys.stderr`, with control characters escaped: a message may contain
    text of a server.

    While a live view is drawn there, lines go above it.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            print(printable_lines(self.format(record)), file=sys.stderr, flush=True)
        except Exception:  # noqa: BLE001 - like every handler: logging never ends a program
            self.handleError(record)


def log_to_stderr(level: str) -> None:
    """Log messages to stderr.

    Args:
        level: The lowest level that is shown, such as "warning".
    """
    logging.basicConfig(
        level=level.upper(), format="loadgen: %(levelname)s: %(message)s", handlers=[ToStderr()]
    )
