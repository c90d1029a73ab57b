"""In flight: the chart that explains a run, of the requests in flight and of TTFT below."""

from collections.abc import Sequence

from loadgen.report.html import Chart, Drawing, Linear, Panel
from loadgen.report.result import RunResult
from loadgen.report.result.timeline import PercentileCourse, Timeline
from loadgen.report.run_page import scatter, server_levels, slo_limits
from loadgen.report.run_page.time_columns import ALONG, TimeColumns

LEVELS = {"running": ("running (server)", 3), "waiting": ("waiting (server)", 2)}
NEEDED = {"p50": 10, "p99": 100}  # requests of a column, for its percentile to be drawn over those of a sample


def drawing(result: RunResult) -> Drawing | None:
    """Draw the chart; None where the result has no timeline."""
    timeline = result.timeline
    if not isinstance(timeline, Timeline):
        return None
    columns = TimeColumns.of(timeline)
    levels = server_levels.curves(server_levels.telemetry(result), columns.ends[-1], LEVELS)
    flying = (columns.steps("in flight", timeline.in_flight, 1), *levels)
    scale = Linear.over("", (y for curve in flying for y in curve.ys))
    ttft = _ttft(result, timeline, columns) if result.streams else None
    panels = (Panel("Requests", scale, flying, height=110), *([ttft] if ttft else []))
    about = "Over the seconds of the run: requests in flight, those running and waiting at the server"
    about += ", and TTFT" if ttft else ""
    chart = Chart(
        f"In flight{' and TTFT' * bool(ttft)} over time", about, ALONG, columns.scale, panels, columns.middles
    )
    return Drawing("in-flight", chart)


def _ttft(result: RunResult, timeline: Timeline, columns: TimeColumns) -> Panel | None:
    """Draw TTFT of each request, with percentiles over a sample; of a result without single requests, by columns."""
    sample, course = result.request_sample, timeline.ttft_ms
    if sample is None:
        return _in_columns(result, course, columns)
    if len(sample.sent_s) == sample.requests:
        return scatter.panel("ttft", sample, result, columns.reach)
    curves = (
        columns.points(f"TTFT {p}", _of_enough(course.percentile(p), timeline.ended, NEEDED[p]), colour)
        for p, colour in (("p50", 6), ("p99", 2))
    )
    return scatter.panel("ttft", sample, result, columns.reach, *curves)


def _in_columns(result: RunResult, course: PercentileCourse, columns: TimeColumns) -> Panel | None:
    curves = [columns.points(f"TTFT {p}", course.percentile(p), colour) for colour, p in enumerate(NEEDED, 1)]
    values = [y for curve in curves for y in curve.ys]
    if all(value is None for value in values):
        return None
    limits, far = slo_limits.in_panel("ttft", result, values)
    scale = scatter.scale_for([*values, *(limit.y for limit in limits)])
    return Panel(f"TTFT, {scatter.unit(scale)}{far}", scale, (*limits, *curves), scatter.HEIGHT)


def _of_enough(values: Sequence[float | None], counts: Sequence[int], least: int) -> list[float | None]:
    return [value if count >= least else None for value, count in zip(values, counts, strict=True)]
