"""The page of a comparison: the answer, the forest plot, the rows that tell something, and the others folded."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from loadgen.analysis.compare import answer
from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.forest import forest
from loadgen.analysis.compare.row import Conclusion, Row
from loadgen.analysis.compare.side import Side
from loadgen.analysis.compare.texts import (
    CONFIDENCE_TEXT,
    bounds,
    change,
    explanations,
    legend,
    load,
    notable_rows,
    runs,
    unit,
    values,
)
from loadgen.report.answer_badge import answer_badge
from loadgen.report.html import (
    Block,
    Cell,
    Document,
    Drawing,
    Heading,
    Items,
    Note,
    Paragraph,
    Span,
    Table,
    Tone,
    cell,
    line,
)
from loadgen.util.number_format import plural

TONES = {
    Conclusion.BETTER: Tone.GOOD,
    Conclusion.WORSE: Tone.BAD,
    Conclusion.MAYBE: Tone.STRONG,
    Conclusion.NO_SIGNIFICANT_DIFFERENCE: Tone.QUIET,
    Conclusion.UNKNOWN: Tone.QUIET,
}
MAX_IN_LINE = 2  # differences of the environment that are shown in the first line


def page(comparison: Comparison) -> Document:
    """Return the document of a comparison."""
    names = [side.name for side in comparison.sides]
    title = f"{', '.join(names[1:])} compared with {names[0]}"
    if len(comparison.candidates) == 1:
        title = next(answer.parts(comparison, comparison.candidates[0]))[0]
    return Document(title, tuple(_blocks(comparison)))


def _blocks(comparison: Comparison) -> Iterator[Block]:
    is_alone = len(comparison.candidates) == 1
    for candidate in comparison.candidates:
        (title, colour), *others = answer.parts(comparison, candidate)
        if not is_alone:
            yield Heading(2, title)
        about = [_about(comparison, candidate), *([load(comparison)] if is_alone else [])]
        yield Paragraph(line(". ".join(about)))
        yield answer_badge(others, simulated=bool(comparison.simulated_sides), answer=colour)
        if is_alone:
            yield from _warnings(comparison)
        yield from _candidate_blocks(comparison, candidate)
    if not is_alone:
        yield Heading(2, "What was compared")
        yield Paragraph(line(load(comparison)))
        yield from _warnings(comparison)
    rows = tuple((cell(side.name), cell(runs(side)), cell(Span(side.path, Tone.CODE))) for side in comparison.sides)
    yield Table(("Side", "Runs", "Read from"), rows)


def _about(comparison: Comparison, candidate: CandidateRows) -> str:
    """Say what is compared, and in what the sides differ if that is little."""
    base, other = comparison.baseline, candidate.candidate
    found = candidate.differences
    shown = [f"{each.name} {each.other} instead of {each.one}" for each in found[:MAX_IN_LINE]]
    more = [f"{len(found) - MAX_IN_LINE} more below"] if len(found) > MAX_IN_LINE else []
    differs = f". What differs: {'; '.join((*shown, *more))}" if shown else ""
    return f"{_named(other)} compared with {_named(base)}{differs}"


def _named(side: Side) -> str:
    file = Path(side.path).name
    return side.name if side.name in (side.path, file) else f"{side.name} ({file})"


def _warnings(comparison: Comparison) -> Iterator[Block]:
    if found := (*comparison.clashes, *comparison.notes):
        yield Note("warning", "Read this first", (Items(tuple(map(line, found))),))


def _candidate_blocks(comparison: Comparison, candidate: CandidateRows) -> Iterator[Block]:
    names = (comparison.baseline.name, candidate.candidate.name)
    notable = notable_rows(candidate)
    others = [row for row in candidate.rows if row not in notable]
    if (chart := forest(notable, names)) is not None:
        yield Drawing(f"forest-{comparison.candidates.index(candidate) + 1}", chart)
    yield _table(names, notable)
    for word, meaning in legend(comparison, notable):
        yield Paragraph(line(Span(word, TONES[word]), f": {meaning}"))
    if others:
        title = f"{plural(len(others), 'further row')} without a significant difference or an interval"
        yield Note("note", title, (_table(names, others),), folded=True)
    clock = comparison.baseline.meaning.clock
    explained = [f"Latencies are from {clock}.", *explanations(comparison, candidate, candidate.rows)]
    yield Note("note", "How the intervals were made", (Items(tuple(map(line, explained))),), folded=True)
    if len(candidate.differences) > MAX_IN_LINE:
        rows = tuple((cell(each.name), cell(each.one), cell(each.other)) for each in candidate.differences)
        yield Note("note", "What differs", (Table(("Setting", *names), rows),), folded=False)


def _table(names: tuple[str, str], rows: Sequence[Row]) -> Table:
    return Table(("", *names, "Change", f"{CONFIDENCE_TEXT} interval", ""), tuple(map(_cells, rows)), text_columns=1)


def _cells(row: Row) -> tuple[Cell, ...]:
    tone = TONES[row.conclusion]
    name = Span(row.metric.title, about=row.metric.name)
    return (
        cell(name),
        *(cell(each + unit(row)) for each in values(row)),
        cell(Span(change(row), tone)),
        cell(bounds(row)),
        cell(Span(row.conclusion, tone)),
    )
