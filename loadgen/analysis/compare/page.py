"""The blocks of a comparison: the answer, the forest plot of its changes, the rows that tell
something, the others. The page is all of them; the console prints those for a terminal.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from loadgen.analysis.compare import texts
from loadgen.analysis.compare.answer import change_of
from loadgen.analysis.compare.changed_parts import ChangedParts
from loadgen.analysis.compare.compared_run import SavedRun
from loadgen.analysis.compare.comparison import CandidateRows, Comparison
from loadgen.analysis.compare.metrics import Metric
from loadgen.analysis.compare.pair import Conclusion, Row
from loadgen.analysis.compare.side import Side
from loadgen.document import (
    Block,
    Cell,
    Document,
    Drawing,
    Heading,
    Items,
    Line,
    Note,
    Paragraph,
    Span,
    Table,
    Tone,
    cell,
    line,
    terminal_writer,
)
from loadgen.document.charts.chart import Chart, Curve, Dots, Mark, Panel, WhiskerLook, Whiskers
from loadgen.document.charts.scale import Linear, Names
from loadgen.report.run_page import run
from loadgen.report.sections import CLOCKS, legend
from loadgen.util.number_format import plural
from loadgen.util.terminal_text import PLAIN, Screen

# Pixels of a row, with room for a label above a dot in the words of a narrow page, and of the space
# above and below all rows.
ROW, EDGE = 28, 8
# The axis ends at least here, %, and at most at so many times the largest change.
LEAST, MAX_BY_CHANGE = (10.0, 4.0)
ROOM = 0.2  # of the axis, for the labels behind the whiskers
LOOKS: dict[Conclusion, tuple[WhiskerLook, str]] = {
    Conclusion.BETTER: ("gain", "better"),
    Conclusion.WORSE: ("loss", "worse"),
    Conclusion.BETTER_HERE: ("gain", "better here"),
    Conclusion.WORSE_HERE: ("loss", "worse here"),
    Conclusion.MAYBE: ("other", "perhaps"),
    Conclusion.NO_SIGNIFICANT_DIFFERENCE: ("plain", "no significant difference"),
}
TONES = {
    Conclusion.BETTER: Tone.GOOD,
    Conclusion.WORSE: Tone.BAD,
    Conclusion.BETTER_HERE: Tone.GOOD,
    Conclusion.WORSE_HERE: Tone.BAD,
    Conclusion.MAYBE: Tone.STRONG,
    Conclusion.NO_SIGNIFICANT_DIFFERENCE: Tone.QUIET,
    Conclusion.UNKNOWN: Tone.QUIET,
}
MAX_IN_LINE = 2  # differences of the environment that are shown in the first line


def page(comparison: Comparison) -> Document:
    """Return the document of a comparison."""
    base, *others = map(_named, comparison.sides)
    title = f"Comparison of {', '.join(others)} with {base}"
    is_alone = len(comparison.candidates) == 1
    differs = _differs(comparison, comparison.candidates[0]) if is_alone else []
    clock = CLOCKS[comparison.baseline.meaning.clock]
    load = f"{texts.load(comparison).removesuffix('.')}; latencies from {clock}"
    about = ". ".join([load, *differs])
    answers = [change_of(comparison, each).answer for each in comparison.candidates]
    origin = "; ".join(map(_origin, comparison.sides))
    return Document(title, tuple(_blocks(comparison)), tuple(answers), about, origin)


def render(comparison: Comparison, screen: Screen = PLAIN) -> str:
    """Return the text for a terminal; without control characters but those of colours.

    Args:
        comparison: What was compared.
        screen: Where it is shown.
    """
    document = page(comparison)
    shown = tuple(map(_on_terminal, document.blocks))
    return terminal_writer.report(replace(document, blocks=shown), screen)


def _on_terminal(block: Block) -> Block:
    """Leave out the folded rows, of which a page has all."""
    if isinstance(block, Note) and block.folded and isinstance(block.blocks[0], Table):
        return Paragraph.of(f"{block.title}: see --html or --json.")
    return block


def _origin(side: Side) -> str:
    """Say when, where and with what the first run of a side was measured."""
    first = side.starts[0]
    origin = run.origin(first.result) if isinstance(first, SavedRun) else first.date
    return f"{side.name}: {origin}"


def forest(rows: Sequence[Row], names: tuple[str, str]) -> Chart | None:
    """Draw the relative changes of some rows; None if there are none.

    Args:
        rows: Shares, which have no place on the axis, and metrics of the server are left out.
        names: Of the baseline and of the candidate.
    """
    changes = [row for row in rows if not row.metric.is_share and not row.metric.from_server]
    shown = [row for row in changes if row.change is not None]
    if not shown:
        return None
    places = {row.metric.name: float(place) for place, row in enumerate(shown)}
    zero = Curve("", [0.0, 0.0], [-0.5, len(shown) - 0.5], colour=6)
    marks: list[Mark] = [zero, *_whiskers(shown, places)]
    if unknown := [row for row in shown if row.bounds is None]:
        xs = [100 * (row.change or 0.0) for row in unknown]
        ys = [places[row.metric.name] for row in unknown]
        marks.append(Dots("no interval", xs, ys, "open", [texts.change(row) for row in unknown]))
    scale = Names(tuple(row.metric.title for row in shown))
    panel = Panel("", scale, tuple(marks), height=ROW * len(shown) + EDGE)
    base, candidate = names
    about = (
        f"Changes of {plural(len(shown), 'metric')} from {base} to {candidate}, with "
        f"{texts.CONFIDENCE_TEXT} intervals"
    )
    return Chart(
        "What changed", about, f"change from {base} to {candidate}, %", _scale(shown), (panel,)
    )


def _blocks(comparison: Comparison) -> Iterator[Block]:
    is_alone = len(comparison.candidates) == 1
    for candidate in comparison.candidates:
        if not is_alone:
            both = f"{candidate.candidate.quoted} with {comparison.baseline.quoted}"
            yield Heading(2, f"Comparison of {both}")
            yield from map(Paragraph.of, _differs(comparison, candidate))
        yield from _candidate_blocks(comparison, candidate)
    if warnings := texts.notes(comparison):
        yield Note("warning", "Warnings", (Items.of(warnings),))
    if not is_alone:
        yield Heading(2, "What was compared")
    sides = ((side.name, texts.runs(side), Span(side.path, Tone.CODE)) for side in comparison.sides)
    yield Table.of(("Side", "Runs", "Read from"), sides)


def _differs(comparison: Comparison, candidate: CandidateRows) -> list[str]:
    """Say in what the sides differ; of much only the first."""
    differences = candidate.differences
    shown = []
    for setting in differences[:MAX_IN_LINE]:
        name, one, other = _shortened(setting.name, str(setting.one), str(setting.other))
        shown.append(
            f"{name}: {one} ({comparison.baseline.name}), {other} ({candidate.candidate.name})"
        )
    if len(differences) > MAX_IN_LINE:
        shown.append(f"{len(differences) - MAX_IN_LINE} more below")
    return [f"What differs: {'; '.join(shown) or 'nothing recorded'}"]


def _shortened(name: str, one: str, other: str) -> tuple[str, str, str]:
    """Name the flag alone where two commands differ in the value of one flag."""
    first, second = one.split(), other.split()
    changed = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
    if len(first) == len(second) and len(changed) == 1:
        (flag, _, value), (same, _, changed_to) = (word.partition("=") for word in changed[0])
        if flag == same and flag.startswith("--") and value and changed_to:
            return flag, value, changed_to
    return name, one, other


def _named(side: Side) -> str:
    file = Path(side.path).name
    return side.quoted if side.name in (side.path, file) else f"{side.quoted} ({file})"


def _candidate_blocks(comparison: Comparison, candidate: CandidateRows) -> Iterator[Block]:
    names = (comparison.baseline.name, candidate.candidate.name)
    notable = texts.notable_rows(candidate, change_of(comparison, candidate).quoted)
    others = [row for row in candidate.rows if row not in notable]
    head = (
        "Latencies in ms",
        *names,
        "Change",
        f"{texts.CONFIDENCE_TEXT} interval",
        "",
    )
    if (chart := forest(notable, names)) is not None:
        yield Drawing(f"forest-{comparison.candidates.index(candidate) + 1}", chart)
    parts = ChangedParts(comparison.baseline, candidate.candidate)
    yield _table(head, notable, parts)
    tones = {str(conclusion): tone for conclusion, tone in TONES.items()}
    tones |= dict.fromkeys(texts.PERHAPS.values(), TONES[Conclusion.MAYBE])
    if latencies := legend([row.metric.latency for row in notable]):
        yield Paragraph.of(latencies)
    for word, meaning in texts.legend(comparison, notable):
        yield Paragraph.of(Span(word, tones.get(word, Tone.QUIET)), f": {meaning}.")
    if others:
        title = (
            f"{plural(len(others), 'further row')} without a significant difference or an interval"
        )
        yield Note.fold(title, _table(head, others, parts))
    explained = texts.explanations(comparison, candidate, candidate.rows)
    if items := Items.of(explained).items:
        yield Note.fold("How the intervals were made", Items(items))
    if len(candidate.differences) > MAX_IN_LINE:
        settings = (
            (difference.name, difference.one, difference.other)
            for difference in candidate.differences
        )
        table = Table.of(("Setting", *names), settings)
        yield Note("note", "What differs", (table,), folded=False)


def _table(head: tuple[str, ...], rows: Iterable[Row], parts: ChangedParts) -> Table:
    """Make the table of some rows, each change of parts below the first row that has it."""
    said = {""}
    cells = []
    for row in rows:
        text = parts.text(row)
        cells.append(_cells(row, () if text in said else (line(text),)))
        said.add(text)
    return Table.of(head, cells, text_columns=1, remarks=True)


def _cells(row: Row, more: Sequence[Line]) -> tuple[Cell | Span | str, ...]:
    tone = TONES[row.conclusion]
    return (
        Span(_label(row.metric), about=row.metric.name),
        *texts.values(row),
        Span(texts.change(row), tone),
        texts.bounds(row) or str(Conclusion.UNKNOWN),
        cell(line(Span(texts.word(row), tone)), *more),
    )


def _label(metric: Metric) -> str:
    """Name a metric, with its unit where neither its name nor the head of the table has it."""
    has_unit = metric.latency or metric.is_share or metric.title.endswith("/s")
    return metric.title if has_unit or not metric.unit else f"{metric.title}, {metric.unit}"


def _whiskers(shown: Sequence[Row], places: dict[str, float]) -> list[Whiskers]:
    whiskers = []
    for conclusion, (look, name) in LOOKS.items():
        alike = [
            (row, row.bounds)
            for row in shown
            if row.conclusion is conclusion and row.bounds is not None
        ]
        if alike:
            whiskers.append(
                Whiskers(
                    name,
                    at=[places[row.metric.name] for row, _ in alike],
                    lows=[100 * low for _, (low, _) in alike],
                    highs=[100 * high for _, (_, high) in alike],
                    look=look,
                    across=True,
                    values=[100 * (row.change or 0.0) for row, _ in alike],
                    labels=[
                        texts.change(row) if row.conclusion in texts.SIGNIFICANT else ""
                        for row, _ in alike
                    ],
                )
            )
    return whiskers


def _scale(shown: Sequence[Row]) -> Linear:
    """Choose an axis for all changes, and for their intervals unless these are much wider."""
    changes = [100 * (row.change or 0.0) for row in shown]
    most = MAX_BY_CHANGE * max(map(abs, changes), default=0.0) + LEAST
    ends = [
        100 * end
        for row in shown
        if row.bounds is not None
        for end in row.bounds
        if math.isfinite(end)
    ]
    low, high = (
        limit(max(-most, min(end, most)) for end in (*changes, *ends, 0.0)) for limit in (min, max)
    )
    return Linear.around("%", [low, high + ROOM * (high - low)])
