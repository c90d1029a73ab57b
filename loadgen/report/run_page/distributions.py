"""Distributions: latencies by percentile, on the axis on which HdrHistogram plots them."""

import math

from loadgen.report.console import distributions
from loadgen.report.distribution import percentiles_by_nines
from loadgen.report.html import Chart, Curve, Drawing, Log, Nines, Panel
from loadgen.report.result import RunResult

LOWEST = -math.log10(0.98)  # p2: below it are gaps of next to nothing, which would take half of the height
A_DECADE = 24  # points of a curve from 90 to 99 %, and from there to 99.9 %
WAITS = ("pool_wait", "connect")


def drawing(result: RunResult) -> Drawing | None:
    """Draw a curve for each latency, from the clock of --latency-from, and for the lag; None where there is nothing."""
    other = "_sent" if result.latency_from == "due" else "_due"
    shown = [(name, title) for name, title in distributions(result) if not name.endswith(other) and name not in WAITS]
    found = {title: result.histograms.named(name) for name, title in shown}
    found = {title: histogram for title, histogram in found.items() if histogram.count}
    if not found:
        return None
    most = max(1.0, math.log10(max(histogram.count for histogram in found.values())))
    places = [LOWEST, *(number / A_DECADE for number in range(1, math.ceil(most * A_DECADE))), most]
    curves = tuple(
        Curve(title, places, percentiles_by_nines(histogram, places), colour=1 + number % 6)
        for number, (title, histogram) in enumerate(found.items())
    )
    scale = Log.over("ms", (value for curve in curves for value in curve.ys))
    about = f"The percentiles of {', '.join(found)}, from 2 to the highest of which there is a value, in ms"
    panel = Panel("Latency, ms", scale, curves, height=280)
    return Drawing("distributions", Chart("Latency by percentile", about, "percentile", Nines(most), (panel,), places))
