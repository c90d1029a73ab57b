"""Distributions: latencies by percentile, on the axis on which HdrHistogram plots them."""

import math
from collections.abc import Iterator, Mapping, Sequence

from loadgen.core.histogram import Histogram
from loadgen.report.html import Band, Chart, Curve, Drawing, Linear, Nines, Panel
from loadgen.report.latency_table import TITLES, client_errors, measured
from loadgen.report.result import RunResult
from loadgen.report.result.latencies import percentiles_by_nines
from loadgen.report.run_page import slo_limits
from loadgen.util.number_format import four_digits

LOWEST = -math.log10(0.98)  # p2: below it are gaps of next to nothing
A_DECADE = 24  # points of a curve from 90 to 99 %, and from there to 99.9 %


def drawing(result: RunResult) -> Drawing | None:
    """Draw a panel for each latency, on the clock of --latency-from; None where nothing was measured."""
    found = {name: result.histograms.histogram(name) for name, _ in measured(result)}
    if not found:
        return None
    most = max(1.0, math.log10(max(histogram.count for histogram in found.values())))
    places = [LOWEST, *(number / A_DECADE for number in range(1, math.ceil(most * A_DECADE))), most]
    panels = tuple(_panel(name, histogram, places, result) for name, histogram in found.items())
    about = "The percentiles of each latency, from 2 to the highest of which there is a value, in ms"
    return Drawing("distributions", Chart("Latency by percentile", about, "percentile", Nines(most), panels, places))


def _panel(name: str, histogram: Histogram, places: Sequence[float], result: RunResult) -> Panel:
    metric = name.partition("_")[0]
    curve = Curve(TITLES[metric], places, percentiles_by_nines(histogram, places))
    errors = client_errors(name, result)
    limits, far = slo_limits.in_panel(metric, result, curve.ys)
    scale = Linear.over("ms", [*curve.ys, *(limit.y for limit in limits)])
    return Panel(f"{curve.name}, ms{far}", scale, (*_band(curve, errors), *limits, curve), height=80)


def _band(curve: Curve, errors: Mapping[str, float | None]) -> Iterator[Band]:
    known = sorted(
        (-math.log10(1 - float(name[1:]) / 100), error)
        for name, error in errors.items()
        if name.startswith("p") and name != "p100" and error is not None
    )
    points = [
        (at, value, error)
        for at, value in zip(curve.xs, curve.ys, strict=True)
        if value is not None and (error := _error_at(at, known)) is not None
    ]
    if points:
        name = f"client error, at most {four_digits(max(error for _, _, error in points))} ms"
        xs, lows, highs = zip(*((at, value - error, value + error) for at, value, error in points), strict=True)
        yield Band(name, xs, lows, highs)


def _error_at(at: float, known: Sequence[tuple[float, float]]) -> float | None:
    """Return the greater of the errors that are known next below and next above a place; None beyond them."""
    below = [error for place, error in known if place <= at][-1:]
    above = [error for place, error in known if place >= at][:1]
    return max(*below, *above) if below and above else None
