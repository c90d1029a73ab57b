"""Series: the page of several runs at one server: their conclusions, and each of them."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from loadgen.report import series
from loadgen.report.html import (
    Block,
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
    prose,
)
from loadgen.report.result.series import Point, Series
from loadgen.report.run_page import run
from loadgen.report.run_page.load_curve import curve
from loadgen.util.number_format import plural

NAMES = [f"{name.partition('_')[0].upper()} {name.partition('_')[2]}" for name in series.COLUMNS]


def title(runs: Series) -> str:
    """Name the model, and over what the levels are."""
    model = runs.points[0].result.numbers.model_id if runs.points else "no run"
    return f"{model}: {series.title(runs).lower()}"


def date(runs: Series) -> str:
    """Write when the first run began."""
    return run.date(runs.points[0].result.numbers) if runs.points else ""


def blocks(runs: Series) -> Iterator[Block]:
    """Write the conclusions of the runs, their table and chart, and each of them."""
    count = plural(len(runs.points), "run")
    yield Paragraph(line(f"{date(runs)}, {count} at the same server."))
    for banner in series.banners(runs):
        yield Note("warning", banner, ())
    if conclusions := [prose(each.strip()) for each in series.conclusions(runs)]:
        yield Note("info", "Conclusions", (Items(tuple(conclusions)),))
    heads, rows = series.table(runs)
    heads[4 : 4 + len(NAMES)] = NAMES
    yield Paragraph(line(f"Latencies are in ms, from {runs.latency_from}. {series.OF_FEW}."))
    yield _table(heads, rows)
    if (chart := curve(runs)) is not None:
        yield Heading(2, "Throughput against latency")
        yield Drawing("curve", chart)
    yield Heading(2, "The runs")
    yield Table((runs.over, "verdict", "why", "kept in"), tuple(map(_run, runs.points)))


def _table(heads: list[str], rows: list[list[str]]) -> Table:
    """Put the words of the console's table in front: they are to be seen where there is no room for all columns."""
    words = heads.index("verdict")
    head, *cells = ([row[0], *row[words:], *row[1:words]] for row in (heads, *rows))
    body = tuple(tuple(cell(each.strip()) for each in row) for row in cells)
    return Table(tuple(map(str.strip, head)), body, words=1 + len(heads) - words)


def _run(point: Point) -> tuple[Any, ...]:
    """Write the row of a run: its verdict with the reasons, and its files."""
    verdict = Span(point.verdict, Tone.PLAIN if point.verdict == "VALID" else Tone.BAD)
    reasons = point.result.findings.reasons
    return cell(series.named(point.level)), cell(verdict), cell(*reasons), cell(*map(_file, point.saved))


def _file(path: str) -> Line:
    """Link the page of a run, which stands beside this one; name any other file."""
    name = PurePath(path).name
    return line(Span(name, link=name) if name.endswith(".html") else Span(path, Tone.CODE))
