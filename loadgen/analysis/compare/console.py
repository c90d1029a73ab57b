"""The text of a comparison for a terminal: the rows that tell something, how sure they are, and
the answer last.
"""

from collections.abc import Iterator

from loadgen.analysis.compare import texts
from loadgen.analysis.compare.answer import answer
from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.pair import Conclusion, Row
from loadgen.report.summary_line import join_parts
from loadgen.util.terminal_text import PLAIN, Screen, printable, wrap

WIDTH = 80
TITLE_WIDTH = 50


def render(comparison: Comparison, screen: Screen = PLAIN) -> str:
    """Return the whole text, without control characters but those of colours.

    Args:
        comparison: What was compared.
        screen: Where it is shown.
    """
    answers = [
        join_parts(answer(comparison, candidate).parts, screen)
        for candidate in comparison.candidates
    ]
    return "\n".join([*map(printable, _lines(comparison)), *answers]) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    sides = comparison.sides
    others = ", ".join(side.name for side in sides[1:])
    yield f"{f' {others} compared with {sides[0].name} ':=^{TITLE_WIDTH}}"
    for note in texts.notes(comparison):
        yield from _wrapped(f"! {note}", "    ")
    width = max(len(side.name) for side in sides)
    for side in sides:
        yield from _wrapped(f"{side.name:<{width}}  {texts.runs(side)}, {side.path}", "  ")
    for candidate in comparison.candidates:
        yield ""
        yield from _candidate_lines(comparison, candidate)
    yield ""
    yield from _wrapped(texts.load(comparison), "  ")
    yield ""


def _candidate_lines(comparison: Comparison, candidate: CandidateRows) -> Iterator[str]:
    clock = comparison.baseline.meaning.clock
    notable = texts.notable_rows(candidate, answer(comparison, candidate).quoted)
    names = (comparison.baseline.name, candidate.candidate.name)
    head = (
        f"latencies, ms from {clock}",
        *names,
        "change",
        f"{texts.CONFIDENCE_TEXT} interval",
        "",
    )
    room = max((len(row.marks) for row in notable), default=0)
    rows = [(head, False), *((_cells(row, room), row.metric.from_server) for row in notable)]
    widths = [max(len(cells[column]) for cells, _ in rows) for column in range(len(head))]
    in_server_part = False
    for cells, from_server in rows:
        if from_server and not in_server_part:
            yield "Server metrics:"
        in_server_part = from_server
        columns = enumerate(zip(cells, widths, strict=True))
        aligned = (
            f"{cell:<{width}}" if column in (0, len(head) - 1) else f"{cell:>{width}}"
            for column, (cell, width) in columns
        )
        yield "  ".join(aligned).rstrip()
    if rest := len(candidate.rows) - len(notable):
        has = "row has" if rest == 1 else "rows have"
        why = "no significant difference, or no interval"
        yield from _wrapped(f"{rest} further {has} {why}: see --html or --json.", "  ")
    for word, meaning in texts.legend(comparison, notable):
        if word in texts.SIGNIFICANT:
            yield from _wrapped(f"{word}: {meaning}.", "  ")
    for line in texts.explanations(comparison, candidate, notable):
        yield from _wrapped(line, "  ")
    if candidate.differences:
        yield ""
        yield "What differs:"
        for difference in candidate.differences:
            sides = f"{difference.one} ({names[0]}) | {difference.other} ({names[1]})"
            yield from _wrapped(f"  {difference.name}: {sides}", "    ")


def _cells(row: Row, room: int) -> tuple[str, ...]:
    """Write the cells of a row; the mark of its change stands in some room behind all changes."""
    word = str(row.conclusion) if row.conclusion in texts.SIGNIFICANT else ""
    return (
        row.metric.name,
        *texts.values(row),
        texts.change(row) + " " * (room - len(row.marks)),
        texts.bounds(row) or str(Conclusion.UNKNOWN),
        word,
    )


def _wrapped(text: str, indent: str) -> Iterator[str]:
    yield from wrap(printable(text), WIDTH, indent)
