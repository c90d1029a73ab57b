"""Charts of a run: over time, requests in flight with TTFT, rates, latencies, tokens, gaps, and the
metrics of the server; latencies by percentile, on the axis on which HdrHistogram plots them.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from statistics import median
from typing import Literal, Self

from loadgen.config import slo
from loadgen.config.load_profile import LoadProfile
from loadgen.document import Block, Drawing, Paragraph
from loadgen.document.charts.chart import (
    Band,
    Chart,
    Curve,
    Dots,
    Heat,
    Limit,
    Mark,
    Panel,
    Scatter,
)
from loadgen.document.charts.scale import Linear, Log, Nines, Scale
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.report.result import RunResult
from loadgen.report.result.latencies import percentiles_by_nines
from loadgen.report.result.timeline import HeatMap, RequestSample, Timeline
from loadgen.report.sections.latencies import TITLES, client_errors, measured
from loadgen.util.number_format import four_digits, percent

# times the greatest value: a limit beyond would press all values to the bottom of a linear axis
FAR_LIMIT = 3
LOWEST = -math.log10(0.98)  # p2: below it are gaps of next to nothing
A_DECADE = 24  # points of a curve from 90 to 99 %, and from there to 99.9 %
LOG_ABOVE = 20  # times the median: where a latency is further above it, the axis is logarithmic
SCATTER_HEIGHT = 120
ALONG = "seconds since the start of the run"
MIN_REQUESTS = 10  # of a column, on average: the rate of fewer is a comb
Numbers = Sequence[float | None]
OLDER = (
    "There are no charts over time: the loadgen version that saved this result kept no time series."
)
NONE_ENDED = "There are no charts over time: no request has ended."
# of all gaps: those of events that were read together would take most of the height of the map
SHORTEST = 0.02
SHORT = 32  # times: gaps that are so much shorter than the median are left out too
RAMP_POINTS = 40  # of the curve of a ramp
LEVELS = {"running": ("running (server)", 3), "waiting": ("waiting (server)", 2)}
# Requests of a column, for its percentile to be drawn over those of a sample.
NEEDED = {"p50": 10, "p99": 100}


class TimeColumns:
    """Columns of time.

    Args:
        ends: Where the columns begin and end, s, ascending: one more than there are columns.
        parts: How many columns of the timeline each of these has; the last one may have fewer.
    """

    def __init__(self, ends: Sequence[float], parts: int = 1) -> None:
        self.ends = ends
        self._parts = parts
        self.middles = [(begin + end) / 2 for begin, end in pairwise(ends)]
        self.reach = (ends[1] - ends[0]) / 2  # from the middle of a column to its ends
        self.scale = Linear("s", 0.0, ends[-1])

    @classmethod
    def of(cls, timeline: Timeline) -> Self:
        """Take the columns of a timeline."""
        return cls([timeline.width_s * number for number in range(len(timeline.sent) + 1)])

    def joined(self, requests: int) -> "TimeColumns":
        """Join columns so far that each has MIN_REQUESTS of so many requests on average."""
        parts = -(-len(self.middles) // max(1, requests // MIN_REQUESTS))
        return TimeColumns([*self.ends[:-1:parts], self.ends[-1]], parts)

    def rates(self, counts: Sequence[int]) -> list[float]:
        """Divide counts of the columns of the timeline by the time that they took."""
        sums = (
            sum(counts[first : first + self._parts]) for first in range(0, len(counts), self._parts)
        )
        return [
            total / (end - begin)
            for total, (begin, end) in zip(sums, pairwise(self.ends), strict=True)
        ]

    def steps(self, name: str, values: Numbers, colour: int) -> Curve:
        """Draw what held all along each column."""
        return Curve(name, self.ends, [*values, None], colour, steps=True)

    def points(self, name: str, values: Numbers, colour: int) -> Curve:
        """Draw what was seen in each column."""
        return Curve(name, self.middles, values, colour)


def in_flight_drawing(result: RunResult) -> Drawing | None:
    """Draw the chart; None where the result has no timeline."""
    timeline = result.timeline
    if not isinstance(timeline, Timeline):
        return None
    columns = TimeColumns.of(timeline)
    levels = level_curves(server_telemetry(result), columns.ends[-1], LEVELS)
    flying = (columns.steps("in flight", timeline.in_flight, 1), *levels)
    scale = Linear.over("", chain.from_iterable(curve.ys for curve in flying))
    ttft = _ttft(result, timeline, columns) if result.streams else None
    panels = (Panel("Requests", scale, flying, height=110), *([ttft] if ttft else []))
    about = (
        "Over the seconds of the run: requests in flight, those running and waiting at the server"
    )
    about += ", and TTFT" if ttft else ""
    title = f"In flight{' and TTFT' if ttft else ''} over time"
    chart = Chart(title, about, ALONG, columns.scale, panels, columns.middles)
    return Drawing("in-flight", chart)


def blocks(result: RunResult) -> Iterator[Block]:
    """Draw the charts, on the same axis of time; or say why there are none."""
    timeline = result.timeline
    if not isinstance(timeline, Timeline):
        yield Paragraph.of(NONE_ENDED if timeline is None else OLDER)
        return
    columns = TimeColumns.of(timeline)
    telemetry = server_telemetry(result)
    panels = [_requests(result, timeline, columns)]
    settings = result.provenance.settings
    if settings.concurrency_profile is not None:
        planned = _planned_profile(settings.load_profile, columns.ends[-1])
        values: list[float | None] = [*timeline.in_flight]
        scale = Linear.over("", chain(values, *(curve.ys for curve in planned)))
        marks = (columns.steps("in flight", values, 1), *planned)
        panels.append(Panel("Requests in flight", scale, marks))
    if result.request_sample is not None:
        e2el = scatter_panel("e2el", result.request_sample, result, columns.reach)
        panels += [e2el] if e2el else []
    if result.streams:
        tokens = columns.rates(timeline.output_tokens)
        marks = (columns.steps("output tokens", tokens, 1),)
        panels.append(Panel("Output tokens/s", Linear.over("/s", tokens), marks))
    panels += _server(telemetry, columns.ends[-1])
    about = "Over the seconds of the run: requests sent, ended and failed, E2EL"
    about += ", output tokens" if result.streams else ""
    if telemetry.sources or telemetry.gpus:
        about += ", and the metrics of the server and its GPUs"
    chart = Chart("The run over time", about, ALONG, columns.scale, tuple(panels), columns.middles)
    yield Drawing("course", chart)
    if any(map(sum, timeline.icl_ms.counts)):
        yield Drawing("gaps", _gaps(timeline.icl_ms, columns, result))


def server_telemetry(result: RunResult) -> Telemetry:
    """Return the metrics of the server; empty where there are none."""
    return Telemetry() if result.server is None else result.server.telemetry()


def level_curves(
    telemetry: Telemetry,
    end_s: float,
    names: Mapping[str, tuple[str, int]],
    in_unit: Callable[[float], float] = float,
) -> Iterator[Curve]:
    """Draw a curve for each of several levels that the server reported during the run.

    Args:
        telemetry: The metrics.
        end_s: Where the run ends, s.
        names: The name and the colour of each level.
        in_unit: Converts a level to the unit of the axis.
    """
    for quantity, (name, colour) in names.items():
        points = [
            (at, in_unit(level)) for at, level in telemetry.course(quantity) if 0 <= at <= end_s
        ]
        if points:
            places, values = zip(*points, strict=True)
            yield Curve(name, places, values, colour)


def _ttft(result: RunResult, timeline: Timeline, columns: TimeColumns) -> Panel | None:
    """Draw TTFT of each request, with percentiles over a sample; of a result without single
    requests, by columns.
    """
    sample = result.request_sample
    course = timeline.ttft_ms
    if sample is None:
        curves = [
            columns.points(f"TTFT {p}", course.percentile(p), colour)
            for colour, p in enumerate(NEEDED, 1)
        ]
        values = list(chain.from_iterable(curve.ys for curve in curves))
        if all(value is None for value in values):
            return None
        limits, far = limits_in_panel("ttft", result, values)
        scale = scale_for([*values, *(limit.y for limit in limits)])
        title = f"TTFT, {unit(scale)}{far}"
        return Panel(title, scale, (*limits, *curves), SCATTER_HEIGHT)
    if len(sample.sent_s) == sample.requests:
        return scatter_panel("ttft", sample, result, columns.reach)
    curves = []
    for p, colour in (("p50", 6), ("p99", 2)):
        pairs = zip(course.percentile(p), timeline.ended, strict=True)
        values = [value if count >= NEEDED[p] else None for value, count in pairs]
        curves.append(columns.points(f"TTFT {p}", values, colour))
    return scatter_panel("ttft", sample, result, columns.reach, *curves)


def _requests(result: RunResult, timeline: Timeline, columns: TimeColumns) -> Panel:
    wide = columns.joined(sum(timeline.ended))
    sent = wide.rates(timeline.sent)
    ended = wide.rates(timeline.ended)
    planned = _planned_rate(result, columns.ends[-1])
    scale = Linear.over("/s", chain(sent, ended, *(curve.ys for curve in planned)))
    marks: list[Mark] = [wide.steps("sent", sent, 1), wide.steps("ended", ended, 2), *planned]
    if failed := [
        (at, count) for at, count in zip(columns.middles, timeline.failed, strict=True) if count
    ]:
        places, counts = zip(*failed, strict=True)
        tops, texts = [scale.high] * len(places), list(map(str, counts))
        marks.append(Dots("failed", places, tops, "missed", texts=texts))
    return Panel("Requests/s", scale, tuple(marks))


def _planned_rate(result: RunResult, end_s: float) -> list[Curve]:
    settings = result.provenance.settings
    rate = result.numbers.request_rate
    due_s = min(result.provenance.schedule.duration_s, end_s)
    if settings.rate_profile is not None:
        return _planned_profile(settings.load_profile, end_s)
    first = settings.ramp_up_start_rps
    last = settings.ramp_up_end_rps
    if first is not None and last is not None:
        shares = [number / RAMP_POINTS for number in range(RAMP_POINTS + 1)]
        is_linear = settings.ramp_up_strategy == "linear"
        rates = [
            first + share * (last - first) if is_linear else first * (last / first) ** share
            for share in shares
        ]
        return [Curve("asked", [*(due_s * share for share in shares), due_s], [*rates, None], 6)]
    return [] if rate == "inf" else [Curve("asked", [0.0, due_s, due_s], [rate, rate, None], 6)]


def _planned_profile(profile: LoadProfile | None, end_s: float) -> list[Curve]:
    if profile is None:
        return []
    points: list[tuple[float, float | None]] = []
    for phase, (start_s, _) in zip(profile.phases, profile.windows_s(), strict=True):
        steps = RAMP_POINTS if phase.period_s else 1
        offsets = [phase.length_s * number / steps for number in range(steps + 1)]
        points += [
            (start_s + offset, phase.value_at(offset))
            for offset in offsets
            if start_s + offset <= end_s
        ]
    return [Curve("asked", [at_s for at_s, _ in points], [value for _, value in points], 6)]


def _server(telemetry: Telemetry, end_s: float) -> Iterator[Panel]:
    names = {"kv_usage": ("KV cache in use", 1)}
    for curve in level_curves(telemetry, end_s, names, lambda share: 100 * share):
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
    limits, far = limits_in_panel("icl", result, edges)
    curves = [
        columns.points(f"ICL {p}", icl.percentile(p), colour)
        for p, colour in (("p50", 6), ("p99", 2))
    ]
    scale = Log.over("ms", (edges[0] or edges[1] / 2, edges[-1], *(limit.y for limit in limits)))
    left_out = ""
    if first:
        share = percent(below[first - 1] / below[-1], 1)
        left_out = f", without the {share} below {edges[0]:.2g} ms"
    about = f"Gaps between events with tokens, counted by time and by length in ms{left_out}"
    panel = Panel(f"ICL, ms{left_out}{far}", scale, (heat, *limits, *curves), height=200)
    title = "Gaps between tokens over time"
    return Chart(title, about, ALONG, columns.scale, (panel,), columns.middles)


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
    title = "Latency by percentile"
    about = (
        "The percentiles of each latency, from 2 to the highest of which there is a value, in ms"
    )
    chart = Chart(title, about, "percentile", Nines(most), tuple(panels), places)
    return Drawing("distributions", chart)


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
    sent_s, times_ms = zip(*ok, strict=True)
    marks: list[Mark] = [*lines, Scatter(metric.upper(), sent_s, times_ms, reach), *curves]
    if failed:
        sent_s, times_ms = zip(*failed, strict=True)
        marks.append(Scatter("failed, by the time it took", sent_s, times_ms, reach, failed=True))
    scale = scale_for([*(value for _, value in ok), *(limit.y for limit in lines)])
    shown, requests = len(sample.sent_s), "each request"
    if shown != sample.requests:
        requests = f"{shown} of {sample.requests} requests"
    title = f"{metric.upper()} of {requests}, {unit(scale)}{far}"
    return Panel(title, scale, tuple(marks), SCATTER_HEIGHT)


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
        name = f"timing error, at most {four_digits(max(error for _, _, error in points))} ms"
        xs, lows, highs = zip(
            *((at, value - error, value + error) for at, value, error in points), strict=True
        )
        yield Band(name, xs, lows, highs)
