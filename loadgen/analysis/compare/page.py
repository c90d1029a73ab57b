"""The page of a comparison: a document, to be written as Markdown or HTML."""

from collections.abc import Iterator

from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.row import Conclusion, Row
from loadgen.analysis.compare.texts import AT, bounds, change, explanations, runs, values
from loadgen.report.html import Block, Document, Heading, Items, Note, Span, Table, Tone, cell, line

TONES = {
    Conclusion.BETTER: Tone.GOOD,
    Conclusion.WORSE: Tone.BAD,
    Conclusion.NO_SIGNIFICANT_DIFFERENCE: Tone.QUIET,
    Conclusion.UNKNOWN: Tone.QUIET,
}


def page(comparison: Comparison) -> Document:
    """Return the document of a comparison."""
    names = [side.name for side in comparison.sides]
    title = f"{', '.join(names[1:])} compared with {names[0]}"
    return Document(title, tuple(_blocks(comparison)))


def _blocks(comparison: Comparison) -> Iterator[Block]:
    if comparison.notes:
        items = Items(tuple(line(note) for note in comparison.notes))
        yield Note("warning", "Read this first", (items,))
    rows = tuple((cell(side.name), cell(runs(side)), cell(Span(side.path, Tone.CODE))) for side in comparison.sides)
    yield Table(("Side", "Runs", "Read from"), rows)
    for candidate in comparison.candidates:
        yield Heading(2, f"{candidate.candidate.name} compared with {comparison.baseline.name}")
        yield from _candidate_blocks(comparison, candidate)


def _candidate_blocks(comparison: Comparison, candidate: CandidateRows) -> Iterator[Block]:
    names = (comparison.baseline.name, candidate.candidate.name)
    clock = comparison.baseline.starts[0].result.latency_from
    yield _table(f"Latencies from {clock}", names, [row for row in candidate.rows if not row.metric.from_server])
    if from_server := [row for row in candidate.rows if row.metric.from_server]:
        yield _table("Server metrics", names, from_server)
    yield Items(tuple(line(text) for text in explanations(comparison, candidate)))
    if candidate.differences:
        rows = tuple((cell(each.name), cell(each.one), cell(each.other)) for each in candidate.differences)
        yield Note("info", "What differs", (Table(("Setting", *names), rows),), folded=False)


def _table(title: str, names: tuple[str, str], rows: list[Row]) -> Table:
    return Table((title, *names, "Change", f"{AT} interval", ""), tuple(map(_cells, rows)))


def _cells(row: Row) -> tuple[tuple[tuple[Span, ...], ...], ...]:
    unit = "" if row.metric.is_share else f" {row.metric.unit}".rstrip()
    both = (cell(each + unit) for each in values(row))
    tone = TONES.get(row.conclusion, Tone.PLAIN)
    name = cell(Span(row.metric.name, Tone.CODE))
    return (name, *both, cell(Span(change(row), tone)), cell(bounds(row)), cell(Span(row.conclusion, tone)))
