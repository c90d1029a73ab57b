"""Table: what the accuracy tests measured, one row per load."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from tests.helpers.documents import cells_of, table

COLUMNS = ("test", "load", "measured", "bound", "verdict", "when (UTC)")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        test: What is tested; its rows stand together.
        load: Under which load.
        measured: What was found, with units.
        bound: What was allowed, with units.
        met: Whether it was.
        disturbance: What else kept the machine busy; a miss is then not held against the client.
        when: The minute in which it was found, UTC.
    """

    test: str
    load: str
    measured: str
    bound: str
    met: bool
    disturbance: str = ""
    when: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M", time.gmtime()))

    @property
    def verdict(self) -> str:
        """In a few words."""
        if self.met:
            return "met"
        return f"not judged: {self.disturbance}" if self.disturbance else "MISSED"


class Table:
    """Rows in the order in which they were measured; as a pytest plugin it makes itself known to
    the `row` fixture.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Keep a row, and say what becomes of the test: a miss fails it, or skips it where
        others disturbed it.
        """
        self.rows.append(row)
        if not row.met and row.disturbance:
            pytest.skip(f"{row.load}: measured {row.measured} for {row.bound}; {row.disturbance}")
        assert row.met, f"{row.test}, {row.load}: measured {row.measured}, allowed {row.bound}"

    def pytest_configure(self, config: pytest.Config) -> None:
        """Let the fixture find this table."""
        config.stash[KEY] = self


KEY = pytest.StashKey[Table]()


def text(rows: Iterable[Row]) -> str:
    """The rows as aligned text."""
    lines = [COLUMNS, *(cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


def markdown(rows: Iterable[Row], before: str = "") -> str:
    """The rows as a Markdown table; those of the table `before` that were not measured again
    stay as they are.
    """
    lines = {line[:2]: line for line in cells_of(before)}
    lines |= {(row.test, row.load): cells(row) for row in rows}
    return table(COLUMNS, lines.values())


def cells(row: Row) -> tuple[str, ...]:
    """A row's text, by column."""
    return row.test, row.load, row.measured, row.bound, row.verdict, row.when
