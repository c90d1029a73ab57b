"""Spread: how much the numbers of runs at the same level differ."""

import statistics
from collections.abc import Iterator, Sequence

from loadgen.report.result.series import Series
from loadgen.util.number_format import four_digits, percent

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


def lines(series: Series) -> Iterator[str]:
    """Write a table of mean, sample standard deviation and range; nothing unless several runs had one load."""
    points = series.points
    if series.load is None or len(points) < 2:
        return
    found = [(label, [getattr(point.result.numbers, name) for point in points]) for name, label in RATES.items()]
    found += [(label, [point.latency_ms.named(name) for point in points]) for name, label in LATENCIES.items()]
    rows = [(label, _cells(values)) for label, values in found if None not in values]
    widths = [max(map(len, column)) for column in zip(HEADINGS, *(cells for _, cells in rows), strict=True)]
    yield f"{len(points)} runs of one load, {series.load}:"
    for label, cells in (("", HEADINGS), *rows):
        numbers = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        yield f"  {label:<14}  {numbers}"
    throughput = found[0][1]
    if None not in throughput and (mean := statistics.mean(throughput)):
        yield f"  req/s varies by {percent(statistics.stdev(throughput) / mean, 1)} (std / mean)"


def _cells(values: Sequence[float]) -> tuple[str, ...]:
    numbers = (statistics.mean(values), statistics.stdev(values), min(values), max(values))
    return tuple(map(four_digits, numbers))
