"""Curve: throughput against latency, of several runs at one server."""

from collections.abc import Iterator, Sequence

from loadgen.config import slo
from loadgen.report.html import Chart, Curve, Dots, Limit, Linear, Mark, Panel, fitting
from loadgen.report.html.charts.chart import Look
from loadgen.report.result.series import Point, Series
from loadgen.report.series import UNITS, level_of, named
from loadgen.util.number_format import plural

PANELS = {"ttft": "TTFT", "tpot": "TPOT"}
LOOKS: dict[bool | None, tuple[Look, str]] = {
    True: ("met", "met the SLO"),
    False: ("missed", "missed it"),
    None: ("open", "not judged"),
}
MAX_NAMED = 12  # points that have their level beside them


def curve(series: Series) -> Chart | None:
    """Draw a panel for each of TTFT and TPOT at p99, or as the SLO limits it, over the output tokens of a second.

    What a search has found, or the knee of a sweep, has a ring around it. None where no run has both numbers.
    """
    limits = {limit.metric: limit for limit in slo.parse(series.slo)} if series.slo else {}
    points = [point for point in sorted(series.points, key=level_of) if point.result.numbers.output_throughput]
    panels = tuple(
        panel for metric, title in PANELS.items() for panel in _panel(metric, title, points, limits.get(metric), series)
    )
    if not panels:
        return None
    across = [_across(point) for point in points]
    about = f"Output tokens/s and latency of {plural(len(points), 'run')}, by {UNITS[series.over]}"
    scale = Linear.over("tok/s", across)
    return Chart("Throughput against latency", about, "output tokens/s", scale, panels, sorted(set(across)))


def _panel(
    metric: str, title: str, points: Sequence[Point], limit: slo.Limit | None, series: Series
) -> Iterator[Panel]:
    name = f"{metric}_p50" if limit is not None and limit.statistic in ("p50", "median") else f"{metric}_p99"
    latencies = [(point, point.latency_ms.named(name)) for point in points]
    heights = [height for _, height in latencies if height]
    shown = [point for point, height in latencies if height]
    if not shown:
        return
    height_of = {id(point): height for point, height in zip(shown, heights, strict=True)}
    marks: list[Mark] = [Curve("", list(map(_across, shown)), heights)]
    if limit is not None and name == limit.name.replace("median", "p50"):
        marks.insert(0, Limit(f"SLO: {limit.text}", limit.threshold))
        heights = [*heights, limit.threshold]
    scale = fitting("ms", heights)
    for met, (look, said) in LOOKS.items():
        own = [point for point in shown if point.met is met]
        if own:
            labels = [named(point.level) if shown.index(point) < MAX_NAMED else "" for point in own]
            texts = [f"{named(point.level)}: {title} {scale.written(height_of[id(point)])}" for point in own]
            ups = [height_of[id(point)] for point in own]
            marks.append(Dots(said, list(map(_across, own)), ups, look, labels, texts))
    ringed = [point for point in shown if point.level == _best(series)]
    if ringed:
        ups = [height_of[id(point)] for point in ringed]
        marks.append(Dots("found" if series.found else "knee", list(map(_across, ringed)), ups, "ring"))
    yield Panel(f"{title} {name.partition('_')[2]}, ms", scale, tuple(marks), height=150)


def _across(point: Point) -> float:
    return float(point.result.numbers.output_throughput or 0.0)


def _best(series: Series) -> float | str | None:
    return series.found.level if series.found else series.knee
