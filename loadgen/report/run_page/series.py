"""Series: the page of several runs at one server: the answer, the chart, a row for each level,
and each run.
"""

from collections.abc import Iterator
from pathlib import PurePath

from loadgen.document import (
    Block,
    Cell,
    Drawing,
    Items,
    Line,
    Note,
    Paragraph,
    Span,
    Table,
    Tone,
    cell,
    line,
    prose,
)
from loadgen.report.answer_badge import answer_badge
from loadgen.report.result.series import Point, Series
from loadgen.report.run_page import run
from loadgen.report.run_page.load_curve import load_chart, pareto_chart
from loadgen.report.run_state import Colour
from loadgen.report.series import level_of, level_text
from loadgen.report.series_answer import is_simulated, load, parts, remarks
from loadgen.report.series_answer import title as kind_of
from loadgen.report.series_rows import (
    FEW_VALUES,
    INTERVAL,
    MARK,
    has_tokens,
    heading,
    sweep_latencies,
    table,
)
from loadgen.util.number_format import fixed, plural

TONES = {
    "met": Tone.GOOD,
    "MISSED": Tone.BAD,
    "SUSPECT": Tone.BAD,
    "INVALID": Tone.BAD,
}
SLO_RULE = (
    "A level meets the SLO if every confidence interval is below its limit, and misses it "
    "if one is above its limit"
)


def date(runs: Series) -> str:
    """Write when the first run began."""
    return run.date(runs.points[0].result.numbers) if runs.points else ""


def origin(runs: Series) -> str:
    """Say when and where the first run was measured, and by which version of loadgen."""
    if not runs.points:
        return ""
    first = runs.points[0].result
    return run.origin_text(first.numbers, first.findings.target, first.findings.loadgen)


def blocks(runs: Series) -> Iterator[Block]:
    """Write what was run, how far to trust it, the chart, the table, the remarks, and every run."""
    model = runs.points[0].result.numbers.model_id if runs.points else "no run"
    what = f"{kind_of(runs).lower()}, {plural(len(runs.points), 'run')}"
    yield Paragraph.of(f"{model}, {what} at the same server")
    if text := load(runs):
        yield Paragraph.of(f"Load: {text}.")
    (_, colour), *others = parts(runs)
    if others:
        # Coloured parts come first: the verdict, and why the series is partial.
        others.sort(key=lambda part: part[1] is Colour.NONE)
        yield answer_badge(others, simulated=is_simulated(runs), answer=colour)
    if (chart := load_chart(runs)) is not None:
        yield Drawing("curve", chart)
    if (chart := pareto_chart(runs)) is not None:
        yield Drawing("pareto", chart)
    columns = table(runs, with_bounds=True)
    cells = zip(*(map(_word, column.cells) for column in columns), strict=True)
    words = len([column for column in columns if not column.has_numbers])
    yield Table.of([column.head for column in columns], cells, text_columns=words)
    legend = [f"Latencies are in ms, from {runs.latency_from}"]
    if any(column.head == INTERVAL for column in columns):
        legend.append(SLO_RULE)
    if any(MARK in "".join(column.cells) for column in columns):
        legend.append(FEW_VALUES)
    yield Paragraph.of(". ".join(legend))
    if notes := [prose(remark) for remark in remarks(runs)]:
        yield Note("note", "About the runs", (Items(tuple(notes)),))
    rates = ("req/s", "tok/s") if has_tokens(runs) else ("req/s",)
    head = (
        "run",
        runs.over,
        "verdict",
        "why",
        "kept in",
        *rates,
        "peak",
        *map(heading, sweep_latencies(runs)),
    )
    rows = (_run(number, point, runs) for number, point in enumerate(runs.points, 1))
    yield Note.fold("Every run", Table.of(head, rows, text_columns=5))


def _word(text: str) -> Span:
    word = text.strip()
    return Span(word, TONES.get(word, Tone.PLAIN))


def _run(number: int, point: Point, runs: Series) -> tuple[Cell | Span | str, ...]:
    numbers = point.result.numbers
    why = [*([point.why] if point.why else []), *point.result.findings.reasons]
    rates = [fixed(numbers.request_throughput, 2)]
    if numbers.generates:
        rates.append(fixed(numbers.output_throughput, 1))
    values = (fixed(point.latency_ms.named(name), 2) for name in sweep_latencies(runs))
    return (
        str(number),
        level_text(level_of(point)),
        _word(point.verdict),
        cell(*why),
        cell(*map(_file, point.saved)),
        *rates,
        str(numbers.max_concurrent_requests),
        *values,
    )


def _file(path: str) -> Line:
    """Link the page of a run, which stands beside this one; name any other file."""
    name = PurePath(path).name
    return line(Span(name, link=name) if name.endswith(".html") else Span(path, Tone.CODE))
