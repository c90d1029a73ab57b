"""The console report of a series: its table, how much repeated runs differ, the remarks on its
runs, and the answer.
"""

import statistics
from collections.abc import Iterator, Sequence
from itertools import chain

from loadgen.report.console import width
from loadgen.report.result.series import Series
from loadgen.report.series_answer import is_simulated, load, parts, remarks, title
from loadgen.report.series_rows import FEW_VALUES, MARK, Column, table
from loadgen.report.summary_line import join_parts
from loadgen.util.number_format import four_digits, percent
from loadgen.util.terminal_text import PLAIN, Screen, printable, wrap

HEADINGS = ("mean", "std", "min", "max")
RATES = {
    "request_throughput": "req/s",
    "output_throughput": "output tok/s",
    "total_token_throughput": "total tok/s",
}
LATENCIES = {
    "ttft_p50": "TTFT p50, ms",
    "ttft_p99": "TTFT p99, ms",
    "tpot_p50": "TPOT p50, ms",
    "tpot_p99": "TPOT p99, ms",
    "e2el_mean": "E2EL mean, ms",
}


def render(
    series: Series,
    *,
    is_brief: bool = False,
    saved: Sequence[str] = (),
    screen: Screen = PLAIN,
) -> str:
    """Render the console report of a series; nothing in it moves a terminal.

    Args:
        series: The runs.
        is_brief: Whether only the table and the answer are written.
        saved: The paths of the files that were written.
        screen: Where it is shown.
    """
    answer = join_parts(parts(series), screen)
    columns = table(series)
    lines = [f"{title(series)}; latencies in ms from {series.latency_from}", *_aligned(columns)]
    if not is_brief:
        lines += spread_lines(series)
        lines += chain.from_iterable(
            wrap(printable(note), width(screen), "    ") for note in _notes(series, columns)
        )
        lines += (f"Saved: {path}" for path in saved)
    return "\n".join([*map(printable, lines), answer]) + "\n"


def _notes(series: Series, columns: Sequence[Column]) -> Iterator[str]:
    """Write what the marks of the table mean, the remarks and the load."""
    if is_simulated(series):
        yield "SIMULATED ENGINE: these numbers describe loadgen's simulator, not a real server."
    if series.partial:
        yield f"PARTIAL: {series.partial}."
    if any(MARK in "".join(column.cells) for column in columns):
        yield FEW_VALUES
    yield from remarks(series)
    if text := load(series):
        yield f"Load: {text}."


def spread_lines(series: Series) -> Iterator[str]:
    """Write a table of mean, sample standard deviation and range; nothing unless several runs
    had one load.
    """
    points = series.points
    if series.load is None or len(points) < 2:
        return
    columns = [
        (label, [getattr(point.result.numbers, name) for point in points])
        for name, label in RATES.items()
    ]
    columns += [
        (label, [point.latency_ms.named(name) for point in points])
        for name, label in LATENCIES.items()
    ]
    rows = []
    for label, values in columns:
        if None not in values:
            statistic = (
                statistics.mean(values),
                statistics.stdev(values),
                min(values),
                max(values),
            )
            rows.append((label, tuple(map(four_digits, statistic))))
    widths = [
        max(map(len, column))
        for column in zip(HEADINGS, *(cells for _, cells in rows), strict=True)
    ]
    yield f"{len(points)} runs of one load, {series.load}:"
    for label, cells in (("", HEADINGS), *rows):
        numbers = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        yield f"  {label:<14}  {numbers}"
    throughput = columns[0][1]
    if None not in throughput and (mean := statistics.mean(throughput)):
        yield f"  req/s varies by {percent(statistics.stdev(throughput) / mean, 1)} (std / mean)"


def _aligned(columns: Sequence[Column]) -> Iterator[str]:
    """Write the rows of the table; the heading of a column with marks leaves their place free."""
    shown = []
    for number, column in enumerate(columns):
        marked = column.has_numbers and any(cell.endswith((MARK, " ")) for cell in column.cells)
        cells = [f"{column.head} " if marked else column.head, *column.cells]
        width = max(map(len, cells))
        right = column.has_numbers or not number
        shown.append([f"{cell:>{width}}" if right else f"{cell:<{width}}" for cell in cells])
    for row in zip(*shown, strict=True):
        yield "  ".join(row).rstrip()
