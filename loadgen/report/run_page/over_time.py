"""Charts over time: rates, latencies, tokens and gaps between them, beside the metrics of the server."""

from collections.abc import Iterator
from itertools import accumulate

from loadgen.config.load_profile import LoadProfile
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.report.html import Block, Chart, Curve, Dots, Drawing, Heat, Linear, Log, Mark, Panel, Paragraph
from loadgen.report.result import RunResult
from loadgen.report.result.timeline import HeatMap, Timeline
from loadgen.report.run_page import scatter, server_levels, slo_limits
from loadgen.report.run_page.time_columns import ALONG, TimeColumns
from loadgen.util.number_format import percent

OLDER = "There are no charts over time: the loadgen version that saved this result kept no time series."
NONE_ENDED = "There are no charts over time: no request has ended."
SHORTEST = 0.02  # of all gaps: those of events that were read together would take most of the height of the map
SHORT = 32  # times: gaps that are so much shorter than the median are left out too
RAMP_POINTS = 40  # of the curve of a ramp


def blocks(result: RunResult) -> Iterator[Block]:
    """Draw the charts, on the same axis of time; or say why there are none."""
    timeline = result.timeline
    if not isinstance(timeline, Timeline):
        yield Paragraph.of(NONE_ENDED if timeline is None else OLDER)
        return
    columns, telemetry = TimeColumns.of(timeline), server_levels.telemetry(result)
    panels = [_requests(result, timeline, columns), *_in_flight(result, timeline, columns)]
    if result.request_sample is not None:
        e2el = scatter.panel("e2el", result.request_sample, result, columns.reach)
        panels += [e2el] if e2el else []
    if result.streams:
        tokens = columns.rates(timeline.output_tokens)
        panels.append(Panel("Output tokens/s", Linear.over("/s", tokens), (columns.steps("output tokens", tokens, 1),)))
    panels += _server(telemetry, columns.ends[-1])
    about = (
        f"Over the seconds of the run: requests sent, ended and failed, E2EL{', output tokens' * result.streams}"
        + (", and the metrics of the server and its GPUs" if telemetry.sources or telemetry.gpus else "")
    )
    chart = Chart("The run over time", about, ALONG, columns.scale, tuple(panels), columns.middles)
    yield Drawing("course", chart)
    if any(map(sum, timeline.icl_ms.counts)):
        yield Drawing("gaps", _gaps(timeline.icl_ms, columns, result))


def _requests(result: RunResult, timeline: Timeline, columns: TimeColumns) -> Panel:
    wide = columns.joined(sum(timeline.ended))
    sent, ended = wide.rates(timeline.sent), wide.rates(timeline.ended)
    asked = _asked(result, columns.ends[-1])
    values = [*sent, *ended, *(y for curve in asked for y in curve.ys)]
    scale = Linear.over("/s", values)
    marks: list[Mark] = [wide.steps("sent", sent, 1), wide.steps("ended", ended, 2), *asked]
    if failed := [(at, count) for at, count in zip(columns.middles, timeline.failed, strict=True) if count]:
        places, counts = zip(*failed, strict=True)
        marks.append(Dots("failed", places, [scale.high] * len(places), "missed", texts=list(map(str, counts))))
    return Panel("Requests/s", scale, tuple(marks))


def _asked(result: RunResult, end_s: float) -> list[Curve]:
    settings, rate = result.provenance.settings, result.numbers.request_rate
    due_s = min(result.provenance.schedule.duration_s, end_s)
    if settings.rate_profile is not None:
        return _profile(settings.load_profile, end_s)
    first, last = settings.ramp_up_start_rps, settings.ramp_up_end_rps
    if first is not None and last is not None:
        shares = [number / RAMP_POINTS for number in range(RAMP_POINTS + 1)]
        is_linear = settings.ramp_up_strategy == "linear"
        rates = [first + share * (last - first) if is_linear else first * (last / first) ** share for share in shares]
        return [Curve("asked", [*(due_s * share for share in shares), due_s], [*rates, None], 6)]
    return [] if rate == "inf" else [Curve("asked", [0.0, due_s, due_s], [rate, rate, None], 6)]


def _profile(profile: LoadProfile | None, end_s: float) -> list[Curve]:
    if profile is None:
        return []
    points: list[tuple[float, float | None]] = []
    for phase, (start_s, _) in zip(profile.phases, profile.windows_s(), strict=True):
        steps = RAMP_POINTS if phase.period_s else 1
        offsets = [phase.length_s * number / steps for number in range(steps + 1)]
        points += [(start_s + offset, phase.value_at(offset)) for offset in offsets if start_s + offset <= end_s]
    return [Curve("asked", [at_s for at_s, _ in points], [value for _, value in points], 6)]


def _in_flight(result: RunResult, timeline: Timeline, columns: TimeColumns) -> Iterator[Panel]:
    settings = result.provenance.settings
    if settings.concurrency_profile is not None:
        asked = _profile(settings.load_profile, columns.ends[-1])
        seen: list[float | None] = [*timeline.in_flight]
        scale = Linear.over("", [*seen, *(y for curve in asked for y in curve.ys)])
        yield Panel("Requests in flight", scale, (columns.steps("in flight", seen, 1), *asked))


def _server(telemetry: Telemetry, end_s: float) -> Iterator[Panel]:
    names = {"kv_usage": ("KV cache in use", 1)}
    for curve in server_levels.curves(telemetry, end_s, names, lambda share: 100 * share):
        if any(curve.ys):
            yield Panel("KV cache in use, %", Linear.over("%", curve.ys), (curve,))
    reads = [(gpu.at_s, gpu.series.get("power_w", ())) for gpu in telemetry.gpus]
    sums: dict[float, float] = {}
    for at_s, watts in reads:
        for at, watt in zip(at_s, watts, strict=False):
            if watt is not None and 0 <= at <= end_s:
                sums[at] = sums.get(at, 0.0) + watt
    if sums:
        power = Curve("GPU power", sorted(sums), [sums[at] for at in sorted(sums)], 1)
        yield Panel("Power of the GPUs, W", Linear.over("W", power.ys), (power,))


def _gaps(icl: HeatMap, columns: TimeColumns, result: RunResult) -> Chart:
    """Draw gaps between events by when they ended and how long they were, without the shortest."""
    below = list(accumulate(map(sum, zip(*icl.counts, strict=True))))
    middle = next(row for row, count in enumerate(below) if 2 * count >= below[-1])
    first = next(
        row
        for row, (count, edge) in enumerate(zip(below, icl.edges, strict=False))
        if count > SHORTEST * below[-1] and SHORT * edge >= icl.edges[middle]
    )
    edges = icl.edges[first:]
    heat = Heat("gaps", 0.0, columns.ends[-1], edges, [column[first:] for column in icl.counts])
    limits, far = slo_limits.in_panel("icl", result, edges)
    curves = [columns.points(f"ICL {p}", icl.percentile(p), colour) for p, colour in (("p50", 6), ("p99", 2))]
    scale = Log.over("ms", (edges[0] or edges[1] / 2, edges[-1], *(limit.y for limit in limits)))
    left_out = f", without the {percent(below[first - 1] / below[-1], 1)} below {edges[0]:.2g} ms" if first else ""
    about = f"Gaps between events with tokens, counted by time and by length in ms{left_out}"
    panel = Panel(f"ICL, ms{left_out}{far}", scale, (heat, *limits, *curves), height=200)
    return Chart("Gaps between tokens over time", about, ALONG, columns.scale, (panel,), columns.middles)
