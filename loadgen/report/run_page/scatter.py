"""Scatter: a latency of every request over time, or of a sample of many requests."""

from collections.abc import Iterable
from statistics import median
from typing import Literal

from loadgen.report.html import Curve, Linear, Log, Mark, Panel, Scatter
from loadgen.report.html.charts.scale import Scale
from loadgen.report.result import RunResult
from loadgen.report.result.timeline import RequestSample
from loadgen.report.run_page import slo_limits

FAR = 20  # times the median: where a latency is further above it, the axis is logarithmic
HEIGHT = 120


def panel(
    metric: Literal["ttft", "e2el"],
    sample: RequestSample,
    result: RunResult,
    reach: float,
    *curves: Curve,
) -> Panel | None:
    """Draw a dot for each ok request, a cross where a failed one ended, and the SLO; None where no request was ok.

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
    lines, far = slo_limits.in_panel(metric, result, (value for _, value in ok))
    marks: list[Mark] = [*lines, _scatter(metric.upper(), ok, reach), *curves]
    if failed:
        marks.append(_scatter("failed, by the time it took", failed, reach, failed=True))
    scale = scale_for([*(value for _, value in ok), *(limit.y for limit in lines)])
    return Panel(f"{metric.upper()} of {_of(sample)}, {unit(scale)}{far}", scale, tuple(marks), HEIGHT)


def scale_for(values: Iterable[float | None]) -> Scale:
    """Choose a linear axis, or a logarithmic one where some latencies are far above most."""
    found = [value for value in values if value is not None]
    far = bool(found) and min(found) > 0 and max(found) > FAR * median(found)
    return Log.over("ms", found) if far else Linear.over("ms", found)


def unit(scale: Scale) -> str:
    """Name the unit of an axis, and that it is logarithmic."""
    return f"{scale.unit}, logarithmic" if isinstance(scale, Log) else scale.unit


def _of(sample: RequestSample) -> str:
    shown = len(sample.sent_s)
    return "each request" if shown == sample.requests else f"{shown} of {sample.requests} requests"


def _scatter(name: str, points: list[tuple[float, float]], reach: float, *, failed: bool = False) -> Scatter:
    xs, ys = zip(*points, strict=True)
    return Scatter(name, xs, ys, reach, failed)
