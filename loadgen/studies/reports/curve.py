"""Curve: throughput against latency, of several runs at one server."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loadgen import slo
from loadgen.report.series import UNITS
from loadgen.studies.reports.charts import BLUE, GREEN, GREY, INK, ORANGE, RED, figure, image, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = {"ttft": "TTFT", "tpot": "TPOT"}
COLOURS = {True: GREEN, False: RED, None: GREY}
MOST_NAMED = 12  # points that have their level beside them


def curve(series: Mapping[str, Any], form: str) -> bytes:
    """A panel for each of TTFT and TPOT at p99, or as the SLO limits it.

    Green runs met the SLO, red ones missed it. What a search has found, or the knee of a sweep, has a ring around it.

    Args:
        series: As `loadgen.report.series` has it.
        form: png or svg.
    """
    limits = {limit.metric: limit for limit in slo.parse(series["slo"])} if series["slo"] else {}
    points = sorted(series["points"], key=lambda point: float(point["level"]))
    with figure(3.4) as drawn:
        for panel, (metric, title) in zip(drawn.subplots(1, 2), PANELS.items(), strict=True):
            _panel(panel, metric, title, points, limits.get(metric), _best(series))
        drawn.suptitle(f"Throughput against latency, by {UNITS[series['over']]}", x=0.005, ha="left", fontsize=10)
        return image(drawn, form)


def _panel(
    axes: "Axes",
    metric: str,
    title: str,
    points: Sequence[Mapping[str, Any]],
    limit: slo.Limit | None,
    best: float | None,
) -> None:
    name = f"{metric}_p50" if limit is not None and limit.statistic in ("p50", "median") else f"{metric}_p99"
    shown = [point for point in points if point["latency_ms"][name] and point["result"]["output_throughput"]]
    across = [point["result"]["output_throughput"] for point in shown]
    up = [point["latency_ms"][name] for point in shown]
    axes.plot(across, up, color=BLUE, lw=1.2, zorder=2)
    axes.scatter(across, up, s=22, color=[COLOURS[point["met"]] for point in shown], zorder=3)
    for point, x, y in list(zip(shown, across, up, strict=True))[:MOST_NAMED]:
        axes.annotate(_named(point["level"]), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7, color=INK)
        if point["level"] == best:
            axes.scatter([x], [y], s=130, facecolors="none", edgecolors=ORANGE, linewidths=1.8, zorder=4)
    if limit is not None and name == limit.name.replace("median", "p50"):
        axes.axhline(limit.most, color=ORANGE, lw=1.0, ls="--", zorder=1)
    axes.set_title(f"{title} {name.partition('_')[2]}, ms")
    axes.set_xlabel("output tokens/s")
    axes.margins(x=0.12, y=0.15)
    plain(axes)


def _named(level: float | str) -> str:
    return level if isinstance(level, str) else f"{level:g}"


def _best(series: Mapping[str, Any]) -> float | None:
    found = series["found"]
    level: float | None = found["level"] if found else series["knee"]
    return level
