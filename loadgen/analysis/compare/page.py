"""Page: a comparison as a document, to be written as Markdown or HTML."""

from collections.abc import Iterator

from loadgen.analysis.compare.comparison import Beside, Comparison
from loadgen.analysis.compare.rendering import AT, bounds, change, reading, runs, values
from loadgen.analysis.compare.row import Row, Word
from loadgen.report.html import Block, Document, Heading, Items, Note, Span, Table, Tone, cell, line

TONES = {Word.BETTER: Tone.GOOD, Word.WORSE: Tone.BAD, Word.NOT_TOLD_APART: Tone.QUIET, Word.UNKNOWN: Tone.QUIET}


def page(comparison: Comparison) -> Document:
    """All of it."""
    names = [side.name for side in comparison.sides]
    title = f"{', '.join(names[1:])} beside {names[0]}"
    return Document(title, tuple(_blocks(comparison)))


def _blocks(comparison: Comparison) -> Iterator[Block]:
    if comparison.notes:
        items = Items(tuple(line(note) for note in comparison.notes))
        yield Note("warning", "Before any number", (items,))
    rows = tuple((cell(side.name), cell(runs(side)), cell(Span(side.path, Tone.CODE))) for side in comparison.sides)
    yield Table(("Side", "Runs", "Read from"), rows)
    for beside in comparison.each:
        yield Heading(2, f"{beside.side.name} beside {comparison.base.name}")
        yield from _beside(comparison, beside)


def _beside(comparison: Comparison, beside: Beside) -> Iterator[Block]:
    names = (comparison.base.name, beside.side.name)
    clock = comparison.base.starts[0].result.latency_from
    yield _table(f"Latencies from {clock}", names, [row for row in beside.rows if row.metric.ours])
    if theirs := [row for row in beside.rows if not row.metric.ours]:
        yield _table("The servers of themselves", names, theirs)
    yield Items(tuple(line(text) for text in reading(comparison, beside)))
    if beside.otherwise:
        unlike = tuple((cell(each.name), cell(each.one), cell(each.other)) for each in beside.otherwise)
        yield Note("info", "What differs", (Table(("Of", *names), unlike),), folded=False)


def _table(title: str, names: tuple[str, str], rows: list[Row]) -> Table:
    return Table((title, *names, "Change", f"{AT} interval", ""), tuple(map(_cells, rows)))


def _cells(row: Row) -> tuple[tuple[tuple[Span, ...], ...], ...]:
    unit = "" if row.metric.is_share else f" {row.metric.unit}".rstrip()
    both = (cell(each + unit) for each in values(row))
    tone = TONES.get(row.word, Tone.PLAIN)
    name = cell(Span(row.metric.name, Tone.CODE))
    return (name, *both, cell(Span(change(row), tone)), cell(bounds(row)), cell(Span(row.word, tone)))
