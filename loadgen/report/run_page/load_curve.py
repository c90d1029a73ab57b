"""Curve: throughput against latency, of several runs at one server."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadgen.config import slo
from loadgen.report.html import Chart, Curve, Dots, Limit, Linear, Mark, Panel, fitting
from loadgen.report.html.charts.chart import Look
from loadgen.report.series import UNITS, level_of, named
from loadgen.util.number_format import plural

PANELS = {"ttft": "TTFT", "tpot": "TPOT"}
LOOKS: dict[bool | None, tuple[Look, str]] = {
    True: ("met", "met the SLO"),
    False: ("missed", "missed it"),
    None: ("open", "not judged"),
}
MOST_NAMED = 12  # points that have their level beside them
Point = Mapping[str, Any]


def curve(series: Mapping[str, Any]) -> Chart | None:
    """A panel for each of TTFT and TPOT at p99, or as the SLO limits it, over the output tokens of a second.

    What a search has found, or the knee of a sweep, has a ring around it. None where no run has both numbers.

    Args:
        series: As `loadgen.report.series` has it.
    """
    limits = {limit.metric: limit for limit in slo.parse(series["slo"])} if series["slo"] else {}
    points = [point for point in sorted(series["points"], key=level_of) if point["result"]["output_throughput"]]
    panels = tuple(
        panel for metric, title in PANELS.items() for panel in _panel(metric, title, points, limits.get(metric), series)
    )
    if not panels:
        return None
    across = [_across(point) for point in points]
    about = f"Output tokens/s and latency of {plural(len(points), 'run')}, by {UNITS[series['over']]}"
    scale = Linear.over("tok/s", across)
    return Chart("Throughput against latency", about, "output tokens/s", scale, panels, sorted(set(across)))


def _panel(
    metric: str, title: str, points: Sequence[Point], limit: slo.Limit | None, series: Mapping[str, Any]
) -> Iterator[Panel]:
    name = f"{metric}_p50" if limit is not None and limit.statistic in ("p50", "median") else f"{metric}_p99"
    shown = [point for point in points if point["latency_ms"][name]]
    if not shown:
        return
    heights = [point["latency_ms"][name] for point in shown]
    marks: list[Mark] = [Curve("", list(map(_across, shown)), heights)]
    if limit is not None and name == limit.name.replace("median", "p50"):
        marks.insert(0, Limit(f"SLO: {limit.text}", limit.threshold))
        heights = [*heights, limit.threshold]
    scale = fitting("ms", heights)
    for met, (look, said) in LOOKS.items():
        own = [point for point in shown if point["met"] is met]
        if own:
            labels = [named(point["level"]) if shown.index(point) < MOST_NAMED else "" for point in own]
            texts = [f"{named(point['level'])}: {title} {scale.written(point['latency_ms'][name])}" for point in own]
            ups = [point["latency_ms"][name] for point in own]
            marks.append(Dots(said, list(map(_across, own)), ups, look, labels, texts))
    ringed = [point for point in shown if point["level"] == _best(series)]
    if ringed:
        ups = [point["latency_ms"][name] for point in ringed]
        marks.append(Dots("found" if series["found"] else "knee", list(map(_across, ringed)), ups, "ring"))
    yield Panel(f"{title} {name.partition('_')[2]}, ms", scale, tuple(marks), height=150)


def _across(point: Point) -> float:
    return float(point["result"]["output_throughput"])


def _best(series: Mapping[str, Any]) -> float | str | None:
    found = series["found"]
    level: float | str | None = found["level"] if found else series["knee"]
    return level
