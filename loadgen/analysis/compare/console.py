"""Console: a comparison as text."""

import textwrap
from collections.abc import Iterator, Sequence

from loadgen.analysis.compare.comparison import Beside, Comparison
from loadgen.analysis.compare.rendering import AT, bounds, change, reading, runs, values
from loadgen.analysis.compare.row import Row
from loadgen.util.terminal_text import printable

WIDTH = 90
TITLE = 50


def render(comparison: Comparison) -> str:
    """All of it; nothing in it moves a terminal."""
    return "\n".join(printable(line) for line in _lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    sides = comparison.sides
    others = ", ".join(side.name for side in sides[1:])
    yield f"{f' {others} beside {sides[0].name} ':=^{TITLE}}"
    for note in comparison.notes:
        yield from _wrapped(note, "! ")
    width = max(len(side.name) for side in sides)
    for side in sides:
        yield from _wrapped(f"{side.name:<{width}}  {runs(side)}, {side.path}", "")
    for beside in comparison.each:
        yield ""
        yield from _beside(comparison, beside)


def _beside(comparison: Comparison, beside: Beside) -> Iterator[str]:
    if beside.otherwise:
        yield "What differs:"
        for each in beside.otherwise:
            yield from _wrapped(f"{each.name}: {each.one} | {each.other}", "  ")
        yield ""
    clock = comparison.base.starts[0].result.latency_from
    head = (f"latencies from {clock}", "", comparison.base.name, beside.side.name, "change", f"{AT} interval", "")
    rows = [(head, True), *((_cells(row), row.metric.ours) for row in beside.rows)]
    widths = [max(len(cells[column]) for cells, _ in rows) for column in range(len(head))]
    ours = True
    for cells, is_ours in rows:
        if ours and not is_ours:
            yield "The servers of themselves:"
        ours = is_ours
        yield _aligned(cells, widths)
    for line in reading(comparison, beside):
        yield from _wrapped(line, "")


def _cells(row: Row) -> tuple[str, ...]:
    unit = "" if row.metric.is_share else row.metric.unit
    return (row.metric.name, unit, *values(row), change(row), bounds(row), str(row.word))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, unit, *numbers, word = (
        f"{cell:<{width}}" if column in (0, 1, 6) else f"{cell:>{width}}"
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((f"{name} {unit}", *numbers, word)).rstrip()


def _wrapped(text: str, lead: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * len(lead) + "  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
