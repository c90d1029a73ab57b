"""Series: the page of several runs at one server: the answer, the chart, a row for each level,
and each run.
"""

import statistics
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from loadgen.document import (
    Block,
    Cell,
    Document,
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
from loadgen.report.result.series import Point, Series
from loadgen.report.run_page import run
from loadgen.report.run_page.load_curve import load_chart, pareto_chart
from loadgen.report.sections import CLOCKS, legend, verdict
from loadgen.report.sections.latencies import FEW
from loadgen.report.series import (
    FEW_VALUES,
    INTERVAL,
    few_mark,
    has_tokens,
    heading,
    level_of,
    level_text,
    sweep_latencies,
    table,
    word,
)
from loadgen.report.series_answer import (
    answer,
    is_simulated,
    load,
    remarks,
    title,
)
from loadgen.report.series_answer import runs as runs_text
from loadgen.util.number_format import fixed, in_table, percent

RATES = {
    "request_throughput": "req/s",
    "output_throughput": "output tok/s",
    "total_token_throughput": "total tok/s",
}
SPREAD_LATENCIES = ("ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "e2el_mean")
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


def document(runs: Series) -> Document:
    """Put the page together: the answer, the charts, the table, the remarks, and every run."""
    return _document(runs, blocks(runs))


def short(runs: Series, *, is_brief: bool) -> Document:
    """Put together what fits a terminal: the answer, the table and, unless `is_brief`, what there
    is to know of it.
    """
    return _document(runs, _short(runs, is_brief=is_brief))


def _document(runs: Series, blocks: Iterable[Block]) -> Document:
    clock = f"latencies in ms from {CLOCKS[runs.latency_from]}"
    about = "; ".join(filter(None, (runs_text(runs), load(runs), clock)))
    return Document(title(runs), tuple(blocks), (answer(runs),), about, origin(runs))


def blocks(runs: Series) -> Iterator[Block]:
    """Write the charts, the table, the remarks, and every run."""
    if (chart := load_chart(runs)) is not None:
        yield Drawing("curve", chart)
    if (chart := pareto_chart(runs)) is not None:
        yield Drawing("pareto", chart)
    shown = table(runs, with_bounds=True)
    yield shown
    if INTERVAL in shown.head:
        yield Paragraph.of(SLO_RULE)
    if has_marks(shown):
        yield Paragraph.of(FEW_VALUES)
    yield from spread(runs)
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


def _short(runs: Series, *, is_brief: bool) -> Iterator[Block]:
    shown = table(runs)
    yield shown
    if is_brief:
        return
    yield from spread(runs)
    notes = list(remarks(runs))
    notes.insert(0, legend([name.partition("_")[0] for name in sweep_latencies(runs)]))
    if has_marks(shown):
        notes.insert(0, FEW_VALUES)
    if is_simulated(runs):
        notes.append(verdict.SIMULATED)
    yield from map(Paragraph.of, notes)


def spread(runs: Series) -> Iterator[Block]:
    """Write a table of mean, sample standard deviation and range; nothing unless several runs
    had one load.
    """
    points = runs.points
    if runs.load is None or len(points) < 2:
        return
    columns = {
        label: [getattr(point.result.numbers, name) for point in points]
        for name, label in RATES.items()
    }
    columns |= {
        f"{heading(name)}, ms": [point.latency_ms.named(name) for point in points]
        for name in SPREAD_LATENCIES
    }
    known = {label: values for label, values in columns.items() if None not in values}
    rows = []
    for label, values in known.items():
        statistic = (
            statistics.mean(values),
            statistics.stdev(values),
            min(values),
            max(values),
        )
        rows.append((label, *map(in_table, statistic)))
    title = f"{len(points)} runs of one load, {runs.load}"
    yield Table.of((title, "mean", "std", "min", "max"), rows, text_columns=1)
    throughput = known.get("req/s", [])
    if throughput and (mean := statistics.mean(throughput)):
        varies = percent(statistics.stdev(throughput) / mean, 1)
        yield Paragraph.of(f"req/s varies by {varies} (std / mean)")


def has_marks(table: Table) -> bool:
    """Return whether a number of a table is of few values."""
    return any(
        span.text.endswith(FEW)
        for row in table.rows
        for cell in row
        for line in cell
        for span in line
    )


def _run(number: int, point: Point, runs: Series) -> tuple[Cell | Span | str, ...]:
    numbers = point.result.numbers
    why = [*([point.why] if point.why else []), *point.result.findings.reasons]
    rates = [fixed(numbers.request_throughput, 2)]
    if numbers.generates:
        rates.append(fixed(numbers.output_throughput, 1))
    values = (
        fixed(point.latency_ms.named(name), 2) + few_mark(name, numbers.completed)
        for name in sweep_latencies(runs)
    )
    return (
        str(number),
        level_text(level_of(point)),
        word(point.verdict),
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
