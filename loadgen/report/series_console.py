"""The console report of a series: its table, the remarks on its runs, and the answer last."""

from collections.abc import Iterator, Sequence

from loadgen.report import series_spread
from loadgen.report.result.series import Series
from loadgen.report.series_answer import is_simulated, load, parts, remarks, title
from loadgen.report.series_rows import FEW_VALUES, MARK, Column, table
from loadgen.report.summary_line import join_parts
from loadgen.util.terminal_text import PLAIN, Screen, printable, wrap

TITLE_WIDTH, WIDTH = 50, 80


def render(series: Series, *, saved: Sequence[str] = (), screen: Screen = PLAIN) -> str:
    """Render the console report of a series; nothing in it moves a terminal.

    Args:
        series: The runs.
        saved: The paths of the files that were written.
        screen: Where it is shown.
    """
    lines = [*_lines(series), *(f"Saved: {path}" for path in saved)]
    return "\n".join([*map(printable, lines), join_parts(parts(series), screen)]) + "\n"


def _lines(series: Series) -> Iterator[str]:
    yield f"{f' {title(series)} ':=^{TITLE_WIDTH}}"
    if is_simulated(series):
        yield "SIMULATED ENGINE: these numbers describe loadgen's simulator, not a real server."
    if series.partial:
        yield f"PARTIAL: {series.partial}."
    yield f"latencies in ms from {series.latency_from}"
    columns = table(series)
    yield from _aligned(columns)
    yield from series_spread.lines(series)
    notes = [FEW_VALUES] if any(MARK in cell for column in columns for cell in column.cells) else []
    of_load = [f"Load: {text}."] if (text := load(series)) else []
    for text in (*notes, *remarks(series), *of_load):
        yield from wrap(printable(text), WIDTH, "    ")


def _aligned(columns: Sequence[Column]) -> Iterator[str]:
    """Write the rows of the table; the heading of a column with marks leaves their place free."""
    shown = []
    for number, column in enumerate(columns):
        marked = column.has_numbers and any(cell.endswith((MARK, " ")) for cell in column.cells)
        cells = [f"{column.head} " if marked else column.head, *column.cells]
        width = max(map(len, cells))
        right = column.has_numbers or not number
        shown.append([f"{cell:>{width}}" if right else f"{cell:<{width}}" for cell in cells])
    for row in zip(*shown, strict=True):
        yield "  ".join(row).rstrip()
