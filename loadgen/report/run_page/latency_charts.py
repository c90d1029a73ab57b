"""Charts of latencies: by percentile, on the axis on which HdrHistogram plots them, and of each
request over time.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Literal

from loadgen.config import slo
from loadgen.document import Drawing
from loadgen.document.charts.chart import Band, Chart, Curve, Limit, Mark, Panel, Scatter
from loadgen.document.charts.scale import Linear, Log, Nines, Scale
from loadgen.report.result import RunResult
from loadgen.report.result.latencies import percentiles_by_nines
from loadgen.report.result.timeline import RequestSample
from loadgen.report.sections.latencies import TITLES, client_errors, measured
from loadgen.util.number_format import four_digits

# times the greatest value: a limit beyond would press all values to the bottom of a linear axis
FAR_LIMIT = 3
LOWEST = -math.log10(0.98)  # p2: below it are gaps of next to nothing
A_DECADE = 24  # points of a curve from 90 to 99 %, and from there to 99.9 %
LOG_ABOVE = 20  # times the median: where a latency is further above it, the axis is logarithmic
SCATTER_HEIGHT = 120


def percentile_drawing(result: RunResult) -> Drawing | None:
    """Draw a panel for each latency, on the clock of --latency-from; None where nothing was
    measured.
    """
    histograms = {name: result.histograms.named(name).recorded() for name, _ in measured(result)}
    if not histograms:
        return None
    most = max(1.0, math.log10(max(histogram.count for histogram in histograms.values())))
    places = [LOWEST, *(number / A_DECADE for number in range(1, math.ceil(most * A_DECADE))), most]
    panels = []
    for name, histogram in histograms.items():
        metric = name.partition("_")[0]
        curve = Curve(TITLES[metric], places, percentiles_by_nines(histogram, places))
        band = _band(curve, client_errors(name, result))
        limits, far = limits_in_panel(metric, result, curve.ys)
        scale = Linear.over("ms", [*curve.ys, *(limit.y for limit in limits)])
        marks: tuple[Mark, ...] = (*band, *limits, curve)
        panels.append(Panel(f"{curve.name}, ms{far}", scale, marks, height=60))
    about = (
        "The percentiles of each latency, from 2 to the highest of which there is a value, in ms"
    )
    return Drawing(
        "distributions",
        Chart("Latency by percentile", about, "percentile", Nines(most), tuple(panels), places),
    )


def scatter_panel(
    metric: Literal["ttft", "e2el"],
    sample: RequestSample,
    result: RunResult,
    reach: float,
    *curves: Curve,
) -> Panel | None:
    """Draw a dot for each ok request, a cross where a failed one ended, and the SLO; None where no
    request was ok.

    Args:
        metric: TTFT or E2EL, over when the request was sent.
        sample: The requests.
        result: The result that they are of.
        reach: Half the distance between two places of the readout, s.
        curves: What is drawn over them.
    """
    values = sample.ttft_ms if metric == "ttft" else sample.e2el_ms
    rows = list(zip(sample.sent_s, sample.ttft_ms, values, sample.e2el_ms, strict=True))
    ok = [(at, value) for at, ttft, value, _ in rows if ttft is not None and value is not None]
    failed = [(at, took) for at, ttft, _, took in rows if ttft is None]
    if not ok:
        return None
    lines, far = limits_in_panel(metric, result, (value for _, value in ok))
    marks: list[Mark] = [*lines, _scatter(metric.upper(), ok, reach), *curves]
    if failed:
        marks.append(_scatter("failed, by the time it took", failed, reach, failed=True))
    scale = scale_for([*(value for _, value in ok), *(limit.y for limit in lines)])
    shown = len(sample.sent_s)
    requests = (
        "each request" if shown == sample.requests else f"{shown} of {sample.requests} requests"
    )
    return Panel(
        f"{metric.upper()} of {requests}, {unit(scale)}{far}", scale, tuple(marks), SCATTER_HEIGHT
    )


def limits_in_panel(
    metric: str, result: RunResult, values: Iterable[float | None]
) -> tuple[list[Limit], str]:
    """Select the limits of a latency that its panel shows.

    Args:
        metric: The latency: ttft, tpot, ...
        result: The result, with its SLO.
        values: What else is in the panel, ms.

    Returns:
        The lines, and what the title of the panel says of limits far above all values; empty if
        there are none.
    """
    text = result.provenance.settings.slo
    limits = [limit for limit in slo.parse(text) if limit.metric == metric] if text else []
    most = max((value for value in values if value is not None), default=0.0)
    near = [limit for limit in limits if limit.threshold <= FAR_LIMIT * most]
    far = len(near) < len(limits)
    lines = [Limit(f"SLO: {limit.text}", limit.threshold) for limit in near]
    return lines, " (limit off the scale)" if far else ""


def scale_for(values: Iterable[float | None]) -> Scale:
    """Choose a linear axis, or a logarithmic one where some latencies are far above most."""
    latencies = [value for value in values if value is not None]
    far = bool(latencies) and min(latencies) > 0 and max(latencies) > LOG_ABOVE * median(latencies)
    return Log.over("ms", latencies) if far else Linear.over("ms", latencies)


def unit(scale: Scale) -> str:
    """Name the unit of an axis, and that it is logarithmic."""
    return f"{scale.unit}, logarithmic" if isinstance(scale, Log) else scale.unit


def _band(curve: Curve, errors: Mapping[str, float | None]) -> Iterator[Band]:
    errors_at = sorted(
        (-math.log10(1 - float(name[1:]) / 100), error)
        for name, error in errors.items()
        if name.startswith("p") and name != "p100" and error is not None
    )
    points = []
    for at, value in zip(curve.xs, curve.ys, strict=True):
        # The greater of the known errors next below and next above the place counts.
        below = [error for place, error in errors_at if place <= at][-1:]
        above = [error for place, error in errors_at if place >= at][:1]
        if value is not None and below and above:
            points.append((at, value, max(*below, *above)))
    if points:
        name = f"client error, at most {four_digits(max(error for _, _, error in points))} ms"
        xs, lows, highs = zip(
            *((at, value - error, value + error) for at, value, error in points), strict=True
        )
        yield Band(name, xs, lows, highs)


def _scatter(
    name: str, points: list[tuple[float, float]], reach: float, *, failed: bool = False
) -> Scatter:
    xs, ys = zip(*points, strict=True)
    return Scatter(name, xs, ys, reach, failed)
