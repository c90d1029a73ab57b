"""The text of a comparison for a terminal."""

import textwrap
from collections.abc import Iterator, Sequence

from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.row import Row
from loadgen.analysis.compare.texts import AT, bounds, change, explanations, runs, values
from loadgen.util.terminal_text import printable

WIDTH = 90
TITLE_WIDTH = 50


def render(comparison: Comparison) -> str:
    """Return the whole text, without control characters."""
    return "\n".join(printable(line) for line in _lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    sides = comparison.sides
    others = ", ".join(side.name for side in sides[1:])
    yield f"{f' {others} compared with {sides[0].name} ':=^{TITLE_WIDTH}}"
    for note in comparison.notes:
        yield from _wrapped(note, "! ")
    width = max(len(side.name) for side in sides)
    for side in sides:
        yield from _wrapped(f"{side.name:<{width}}  {runs(side)}, {side.path}", "")
    for candidate in comparison.candidates:
        yield ""
        yield from _candidate_lines(comparison, candidate)


def _candidate_lines(comparison: Comparison, candidate: CandidateRows) -> Iterator[str]:
    if candidate.differences:
        yield "What differs:"
        for each in candidate.differences:
            yield from _wrapped(f"{each.name}: {each.one} | {each.other}", "  ")
        yield ""
    clock = comparison.baseline.starts[0].result.latency_from
    names = comparison.baseline.name, candidate.candidate.name
    head = (f"latencies from {clock}", "", *names, "change", f"{AT} interval", "")
    rows = [(head, False), *((_cells(row), row.metric.from_server) for row in candidate.rows)]
    widths = [max(len(cells[column]) for cells, _ in rows) for column in range(len(head))]
    in_server_part = False
    for cells, from_server in rows:
        if from_server and not in_server_part:
            yield "Server metrics:"
        in_server_part = from_server
        yield _aligned(cells, widths)
    for line in explanations(comparison, candidate):
        yield from _wrapped(line, "")


def _cells(row: Row) -> tuple[str, ...]:
    unit = "" if row.metric.is_share else row.metric.unit
    return (row.metric.name, unit, *values(row), change(row), bounds(row), str(row.conclusion))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, unit, *numbers, conclusion = (
        f"{cell:<{width}}" if column in (0, 1, 6) else f"{cell:>{width}}"
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((f"{name} {unit}", *numbers, conclusion)).rstrip()


def _wrapped(text: str, lead: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * len(lead) + "  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
