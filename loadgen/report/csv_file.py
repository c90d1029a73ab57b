"""CSV (RFC 4180): rows of plain values as lines that spreadsheets, pandas and databases read.

Texts of servers and data sets stand in such rows. So every text is quoted, what a terminal might obey is escaped, and
one that a spreadsheet would take for a formula begins with an apostrophe.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence

from loadgen.util.terminal_text import printable

Value = str | float | bool | None
# What formulas begin with; tabs and line ends are escaped anyway.
FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def lines(columns: Sequence[str], rows: Iterable[Mapping[str, Value]]) -> Iterator[str]:
    """The lines of a file, with their ends: names of columns, then the rows; what a row does not have stays empty."""
    writer = csv.writer(_EchoFile(), quoting=csv.QUOTE_NONNUMERIC)
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_cell(row.get(column)) for column in columns])


class _EchoFile:
    """A file that hands a line back instead of keeping it; `writerow` returns what `write` does."""

    def write(self, line: str) -> str:
        return line


def _cell(value: Value) -> str | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, int | float) else _text(value)


def _text(text: str) -> str:
    shown = printable(text)
    return f"'{shown}" if shown.startswith(FORMULA_STARTS) else shown
