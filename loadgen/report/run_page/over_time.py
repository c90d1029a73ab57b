"""Course: what happened when: requests, tokens and latencies over time, beside what the server said of itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

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

ALONG = "seconds since the clock of the run started"
OLDER = "There are no charts over time: the loadgen that saved this result did not keep what happened when."
NONE_ENDED = "There are no charts over time: no request has ended."
PERCENTILES = ("p50", "p99")
SHORTEST = 0.02  # of all gaps: those of events that were read together would take most of the height of the map
Numbers = Sequence[float | None]


def blocks(own: Mapping[str, Any]) -> Iterator[Block]:
    """The charts, on axes that are alike; or why there are none.

    Args:
        own: loadgen's part of the result.
    """
    if "timeline" not in own or own["timeline"] is None:
        yield Paragraph(line(NONE_ENDED if "timeline" in own else OLDER))
        return
    timeline = own["timeline"]
    times = Times(timeline["width_s"], len(timeline["sent"]))
    limits = slo.parse(text) if (text := own["provenance"]["settings"].get("slo")) else []
    said = Telemetry.from_dict(own["server"]) if own.get("server") else Telemetry()
    panels = (*_ours(timeline, times, limits, said), *_theirs(said, times))
    about = "Over the seconds of the run: requests sent, ended and failed, requests in flight, output tokens, TTFT" + (
        ", and what the server and its GPUs said of themselves" if said.sources or said.gpus else ""
    )
    yield Drawing("course", Chart("The run over time", about, ALONG, times.scale, panels, times.middles))
    if any(map(sum, timeline["icl_ms"]["counts"])):
        yield Drawing("gaps", _gaps(timeline["icl_ms"], times, limits))


class Times:
    """The columns of a timeline.

    Args:
        width_s: Of each.
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


def _ours(timeline: Mapping[str, Any], times: Times, limits: Sequence[slo.Limit], said: Telemetry) -> Iterator[Panel]:
    sent, ended = times.rate(timeline["sent"]), times.rate(timeline["ended"])
    scale = Linear.over("/s", [*sent, *ended])
    marks: list[Mark] = [times.steps("sent", sent, 1), times.steps("ended", ended, 2)]
    if failed := [(at, count) for at, count in zip(times.middles, timeline["failed"], strict=True) if count]:
        places, counts = zip(*failed, strict=True)
        marks.append(Dots("failed", places, [scale.high] * len(places), "missed", texts=list(map(str, counts))))
    yield Panel("Requests/s", scale, tuple(marks))
    flying: list[Curve] = [times.steps("in flight", timeline["in_flight"], 1)]
    told = {"running": ("running, says the server", 2), "waiting": ("waiting, says the server", 3)}
    flying += _levels(said, times, told)
    yield Panel("Requests", Linear.over("", (y for curve in flying for y in curve.ys)), tuple(flying))
    tokens = times.rate(timeline["output_tokens"])
    yield Panel("Output tokens/s", Linear.over("/s", tokens), (times.steps("output tokens", tokens, 1),))
    ttft = [times.points(f"TTFT {p}", timeline["ttft_ms"][p], colour) for colour, p in enumerate(PERCENTILES, 1)]
    if any(value is not None for curve in ttft for value in curve.ys):
        wanted = _limits("ttft", limits)
        values = (*(value for curve in ttft for value in curve.ys), *(limit.y for limit in wanted))
        yield Panel("TTFT, ms", fitting("ms", values), (*wanted, *ttft))


def _theirs(said: Telemetry, times: Times) -> Iterator[Panel]:
    for curve in _levels(said, times, {"kv_usage": ("KV cache in use", 1)}, lambda share: 100 * share):
        yield Panel("KV cache in use, %", Linear("%", 0.0, 100.0), (curve,))
    reads = [(gpu.at_s, gpu.series.get("power_w", ())) for gpu in said.gpus]
    sums: dict[float, float] = {}
    for at_s, watts in reads:
        for at, watt in zip(at_s, watts, strict=False):
            if watt is not None and 0 <= at <= times.ends[-1]:
                sums[at] = sums.get(at, 0.0) + watt
    if sums:
        power = Curve("GPU power", sorted(sums), [sums[at] for at in sorted(sums)], 1)
        yield Panel("Power of the GPUs, W", Linear.over("W", power.ys), (power,))


def _levels(
    said: Telemetry, times: Times, names: Mapping[str, tuple[str, int]], in_unit: Callable[[float], float] = float
) -> Iterator[Curve]:
    """A curve, with its name and colour, for each level of these of which the server told in the course of the run."""
    for quantity, (name, colour) in names.items():
        told = [(at, in_unit(level)) for at, level in said.course(quantity) if 0 <= at <= times.ends[-1]]
        if told:
            places, levels = zip(*told, strict=True)
            yield Curve(name, places, levels, colour)


def _gaps(icl: Mapping[str, Any], times: Times, limits: Sequence[slo.Limit]) -> Chart:
    """Gaps between events by when they ended and how long they were; the SHORTEST are left out."""
    below = list(accumulate(map(sum, zip(*icl["counts"], strict=True))))
    first = next(row for row, count in enumerate(below) if count > SHORTEST * below[-1])
    edges = icl["edges"][first:]
    heat = Heat("gaps", 0.0, times.ends[-1], edges, [column[first:] for column in icl["counts"]])
    wanted = _limits("icl", limits)
    curves = [times.points(f"ICL {p}", icl[p], colour) for colour, p in zip((6, 2), PERCENTILES, strict=True)]
    scale = Log.over("ms", (edges[0] or edges[1] / 2, edges[-1], *(limit.y for limit in wanted)))
    about = (
        "How many gaps between events with tokens ended when, and how long they were, in ms; without the shortest 2 %"
    )
    panel = Panel("ICL, ms", scale, (heat, *wanted, *curves), height=220)
    return Chart("Gaps between tokens over time", about, ALONG, times.scale, (panel,), times.middles)


def _limits(metric: str, limits: Sequence[slo.Limit]) -> list[Limit]:
    return [Limit(f"SLO: {limit.text}", limit.threshold) for limit in limits if limit.metric == metric]
