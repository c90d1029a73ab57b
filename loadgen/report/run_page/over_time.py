"""Charts over time: requests, tokens and latencies, beside the metrics of the server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate

from loadgen.config import slo
from loadgen.metrics.server.telemetry import Telemetry
from loadgen.report.html import (
    Block,
    Chart,
    Curve,
    Dots,
    Drawing,
    Heat,
    Limit,
    Linear,
    Log,
    Mark,
    Panel,
    Paragraph,
    fitting,
    line,
)
from loadgen.report.result import RunResult
from loadgen.report.result.timeline import HeatMap, Timeline

ALONG = "seconds since the clock of the run started"
OLDER = "There are no charts over time: the loadgen version that saved this result kept no time series."
NONE_ENDED = "There are no charts over time: no request has ended."
PERCENTILES = ("p50", "p99")
SHORTEST = 0.02  # of all gaps: those of events that were read together would take most of the height of the map
Numbers = Sequence[float | None]


def blocks(result: RunResult) -> Iterator[Block]:
    """Draw the charts, on the same axis of time; or say why there are none."""
    timeline = result.timeline
    if not isinstance(timeline, Timeline):
        yield Paragraph(line(NONE_ENDED if timeline is None else OLDER))
        return
    times = Times(timeline.width_s, len(timeline.sent))
    limits = slo.parse(text) if (text := result.provenance.settings.slo) else []
    telemetry = Telemetry() if result.server is None else result.server.telemetry()
    panels = (*_measured(timeline, times, limits, telemetry), *_server(telemetry, times))
    about = "Over the seconds of the run: requests sent, ended and failed, requests in flight, output tokens, TTFT" + (
        ", and the metrics of the server and its GPUs" if telemetry.sources or telemetry.gpus else ""
    )
    yield Drawing("course", Chart("The run over time", about, ALONG, times.scale, panels, times.middles))
    if any(map(sum, timeline.icl_ms.counts)):
        yield Drawing("gaps", _gaps(timeline.icl_ms, times, limits))


class Times:
    """The columns of a timeline.

    Args:
        width_s: The width of each, s.
        columns: How many.
    """

    def __init__(self, width_s: float, columns: int) -> None:
        self._width_s = width_s
        self.ends = [width_s * number for number in range(columns + 1)]
        self.middles = [width_s * (number + 0.5) for number in range(columns)]
        self.scale = Linear("s", 0.0, self.ends[-1])

    def rate(self, counts: Sequence[int]) -> Numbers:
        """Counts of the columns per second."""
        return [count / self._width_s for count in counts]

    def steps(self, name: str, values: Numbers, colour: int) -> Curve:
        """What held all along each column."""
        return Curve(name, self.ends, [*values, None], colour, steps=True)

    def points(self, name: str, values: Numbers, colour: int) -> Curve:
        """What was seen in each column."""
        return Curve(name, self.middles, values, colour)


def _measured(timeline: Timeline, times: Times, limits: Sequence[slo.Limit], telemetry: Telemetry) -> Iterator[Panel]:
    sent, ended = times.rate(timeline.sent), times.rate(timeline.ended)
    scale = Linear.over("/s", [*sent, *ended])
    marks: list[Mark] = [times.steps("sent", sent, 1), times.steps("ended", ended, 2)]
    if failed := [(at, count) for at, count in zip(times.middles, timeline.failed, strict=True) if count]:
        places, counts = zip(*failed, strict=True)
        marks.append(Dots("failed", places, [scale.high] * len(places), "missed", texts=list(map(str, counts))))
    yield Panel("Requests/s", scale, tuple(marks))
    flying: list[Curve] = [times.steps("in flight", timeline.in_flight, 1)]
    names = {"running": ("running, says the server", 2), "waiting": ("waiting, says the server", 3)}
    flying += _levels(telemetry, times, names)
    yield Panel("Requests", Linear.over("", (y for curve in flying for y in curve.ys)), tuple(flying))
    tokens = times.rate(timeline.output_tokens)
    yield Panel("Output tokens/s", Linear.over("/s", tokens), (times.steps("output tokens", tokens, 1),))
    ttft = [
        times.points(f"TTFT {p}", timeline.ttft_ms.percentile(p), colour) for colour, p in enumerate(PERCENTILES, 1)
    ]
    if any(value is not None for curve in ttft for value in curve.ys):
        wanted = _limits("ttft", limits)
        values = (*(value for curve in ttft for value in curve.ys), *(limit.y for limit in wanted))
        yield Panel("TTFT, ms", fitting("ms", values), (*wanted, *ttft))


def _server(telemetry: Telemetry, times: Times) -> Iterator[Panel]:
    for curve in _levels(telemetry, times, {"kv_usage": ("KV cache in use", 1)}, lambda share: 100 * share):
        yield Panel("KV cache in use, %", Linear("%", 0.0, 100.0), (curve,))
    reads = [(gpu.at_s, gpu.series.get("power_w", ())) for gpu in telemetry.gpus]
    sums: dict[float, float] = {}
    for at_s, watts in reads:
        for at, watt in zip(at_s, watts, strict=False):
            if watt is not None and 0 <= at <= times.ends[-1]:
                sums[at] = sums.get(at, 0.0) + watt
    if sums:
        power = Curve("GPU power", sorted(sums), [sums[at] for at in sorted(sums)], 1)
        yield Panel("Power of the GPUs, W", Linear.over("W", power.ys), (power,))


def _levels(
    telemetry: Telemetry, times: Times, names: Mapping[str, tuple[str, int]], in_unit: Callable[[float], float] = float
) -> Iterator[Curve]:
    """Draw a curve, with its name and colour, for each of these levels that the server reported during the run."""
    for quantity, (name, colour) in names.items():
        points = [(at, in_unit(level)) for at, level in telemetry.course(quantity) if 0 <= at <= times.ends[-1]]
        if points:
            places, levels = zip(*points, strict=True)
            yield Curve(name, places, levels, colour)


def _gaps(icl: HeatMap, times: Times, limits: Sequence[slo.Limit]) -> Chart:
    """Draw gaps between events by when they ended and how long they were; the SHORTEST are left out."""
    below = list(accumulate(map(sum, zip(*icl.counts, strict=True))))
    first = next(row for row, count in enumerate(below) if count > SHORTEST * below[-1])
    edges = icl.edges[first:]
    heat = Heat("gaps", 0.0, times.ends[-1], edges, [column[first:] for column in icl.counts])
    wanted = _limits("icl", limits)
    curves = [
        times.points(f"ICL {p}", icl.percentile(p), colour) for colour, p in zip((6, 2), PERCENTILES, strict=True)
    ]
    scale = Log.over("ms", (edges[0] or edges[1] / 2, edges[-1], *(limit.y for limit in wanted)))
    about = "Gaps between events with tokens, counted by time and by length in ms, without the shortest 2 %"
    panel = Panel("ICL, ms", scale, (heat, *wanted, *curves), height=220)
    return Chart("Gaps between tokens over time", about, ALONG, times.scale, (panel,), times.middles)


def _limits(metric: str, limits: Sequence[slo.Limit]) -> list[Limit]:
    return [Limit(f"SLO: {limit.text}", limit.threshold) for limit in limits if limit.metric == metric]
