"""Charts of a series: the values that the SLO limits over the levels of the load, and throughput
over interactivity.

The load curve has TTFT and TPOT where there is no SLO. The Pareto chart has tokens per second and
GPU against tokens per second for a user.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from loadgen.checks import Verdict
from loadgen.config import slo
from loadgen.document.charts.chart import Chart, Curve, Dots, Limit, Look, Mark, Panel, Whiskers
from loadgen.document.charts.scale import Linear, Log, Scale, fitting_scale
from loadgen.report.result.series import Series
from loadgen.report.series import (
    INTERVAL,
    SWEEP_LATENCIES,
    UNITS,
    WHOLE_LATENCIES,
    Row,
    heading,
    level_text,
    rows,
    streams,
)
from loadgen.util.number_format import plural

LOOKS: dict[bool | None, tuple[Look, str]] = {
    True: ("met", "met"),
    False: ("missed", "missed"),
    None: ("open", "not judged"),
}
DEFAULT_LATENCIES = ("ttft_p99", "tpot_p99")  # of a sweep without an SLO
# Of the first panel, alone or beside one; of it beside more; of the others.
HIGH = 190
MIDDLE = 150
LOW = 80
LOG_AXIS_RATIO = 20  # times: levels beyond that stand on a logarithmic axis
PERCENT = 100.0
PARETO_HEIGHT = 190
MAX_LABELS = 12  # more would cover each other
USER = "tok/s per user"


class _Value(NamedTuple):
    """A value at a level, in the unit of its panel.

    Attributes:
        row: The level.
        value: The value; infinite: it falls on failed requests; None: there is none.
        bounds: Its bounds, infinite where one is unknown; None: there are none.
        met: Whether it meets its limit; without one, whether the run meets the SLO.
    """

    row: Row
    value: float | None
    bounds: tuple[float, float] | None
    met: bool | None


Key = TypeVar("Key")


class _Place(NamedTuple):
    """A level of the sweep.

    Attributes:
        user: Tokens per second for a user.
        gpu: Output tokens per second and GPU, or of the server where the number of GPUs is unknown.
        row: The level.
    """

    user: float
    gpu: float
    row: Row


def load_chart(series: Series) -> Chart | None:
    """Draw a panel for each value that the SLO limits, first those that the level above the answer
    misses.

    A sweep has a panel of its throughput, too. The level that was found, or the knee, has a ring
    and its name; a search has the bounds of all values. None where no run has such a value.
    """
    shown = [row for row in rows(series) if math.isfinite(row.level) and row.level > 0]
    levels = sorted({row.level for row in shown})
    panels: list[Panel] = []
    for name, limit in _names(series, shown):
        panels += _panel(name, limit, shown, series, names_levels=not panels)
    if not panels:
        return None
    if series.kind == "sweep":
        values = [(row.level, row.throughput("output_throughput")) for row in shown]
        points = [(level, value) for level, value in values if value is not None]
        if points:
            xs, ys = zip(*points, strict=True)
            marks = (Curve("output", xs, ys), Dots("", xs, ys, "first"))
            panels.append(Panel("Output tokens/s", Linear.over("tok/s", ys), marks))
    heights = (HIGH if len(panels) < 3 else MIDDLE, *[LOW] * (len(panels) - 1))
    panels = [replace(panel, height=height) for panel, height in zip(panels, heights, strict=True)]
    unit = UNITS[series.over]
    about = (
        f"{', '.join(panel.title for panel in panels)} at {plural(len(levels), 'level')} of {unit}"
    )
    axis: Scale = Log.over(unit, levels)
    if levels[-1] <= LOG_AXIS_RATIO * levels[0]:
        around = Linear.around(unit, levels)
        axis = replace(around, low=max(0.0, around.low))
    return Chart("What each load level came to", about, unit, axis, tuple(panels), levels)


def pareto_chart(series: Series) -> Chart | None:
    """Draw output tokens/s per GPU over tokens/s for a user, with the levels that no other level
    exceeds in both.

    None for a search, and where fewer than two levels have both numbers. An INVALID run is never on
    the front.
    """
    shown = rows(series) if series.kind == "sweep" else []
    per_gpu = all(row.efficiency is not None and row.efficiency.gpus is not None for row in shown)
    places = []
    for row in shown:
        speed = row.efficiency
        gpu = row.throughput("output_throughput")
        if speed and per_gpu:
            gpu = speed.output_tokens_per_s_per_gpu
        if speed and speed.output_tokens_per_s_per_user and gpu:
            places.append(_Place(speed.output_tokens_per_s_per_user, gpu, row))
    if len(places) < 2:
        return None
    numbers = {
        number: (place.user, place.gpu)
        for number, place in enumerate(places)
        if place.row.verdict != Verdict.INVALID
    }
    front = [places[number] for number in pareto_front(numbers)]
    unit = "tok/s per GPU" if per_gpu else "tok/s"
    xs = sorted({place.user for place in places})
    scale = Linear.over(unit, [place.gpu for place in places])
    panel = Panel(f"Output {unit}", scale, tuple(_marks(places, front, scale)), PARETO_HEIGHT)
    about = (
        f"output {unit} against {USER} at {plural(len(places), 'level')} of {UNITS[series.over]}"
    )
    return Chart("Throughput and interactivity", about, USER, Linear.over(USER, xs), (panel,), xs)


def pareto_front(points: Mapping[Key, tuple[float, float]]) -> list[Key]:
    """Return the keys of the points that no other point exceeds in both coordinates, by the first
    coordinate.
    """
    best = -math.inf
    keys: list[Key] = []
    for key, (_, y) in sorted(points.items(), key=lambda item: (-item[1][0], -item[1][1])):
        if y > best:
            best = y
            keys.append(key)
    return keys[::-1]


def _names(series: Series, shown: Sequence[Row]) -> list[tuple[str, slo.Limit | None]]:
    """List what has a panel: the limits of the SLO, those first that the level above the answer
    does not meet.
    """
    if not series.slo:
        return [
            (name, None) for name in (DEFAULT_LATENCIES if streams(series) else WHOLE_LATENCIES)
        ]
    limits = slo.required_limits(series.slo)
    failing = series.found.fails if series.found is not None else None
    edge: dict[str, bool | None] = {}
    for row in shown:
        if row.level == failing:
            edge |= {bounded.limit: bounded.met for bounded in row.judged.slo}
    return [
        (limit.name, limit)
        for limit in sorted(limits, key=lambda limit: edge.get(limit.text, False) is True)
    ]


def _panel(
    name: str, limit: slo.Limit | None, shown: Sequence[Row], series: Series, *, names_levels: bool
) -> Iterator[Panel]:
    is_rate = limit is not None and limit.metric == "error"
    values = [_value(row, name, limit, PERCENT if is_rate else 1.0) for row in shown]
    if not any(value.value for value in values):
        return
    numbers: list[float] = []
    for value in values:
        numbers += [
            end
            for end in (value.value, *(value.bounds or ()))
            if end is not None and math.isfinite(end)
        ]
    marks: list[Mark] = []
    if limit is not None:
        threshold = limit.threshold * (PERCENT if is_rate else 1.0)
        numbers.append(threshold)
        marks.append(Limit(f"limit: {limit.text}", threshold))
    scale = fitting_scale("%" if is_rate else "ms", numbers)
    ys = [
        None if value.value is None or math.isinf(value.value) else value.value for value in values
    ]
    marks.append(Curve("", [value.row.level for value in values], ys))
    ends = [(value.row.level, *value.bounds) for value in values if value.bounds is not None]
    if ends:
        levels, lows, highs = zip(*ends, strict=True)
        marks.append(Whiskers(INTERVAL, levels, lows, highs))
    marks += _ring(values, series)
    marks += [*_dots(values, scale), *(_level_names(values, series) if names_levels else ())]
    title = "Failed requests" if is_rate else heading(name)
    yield Panel(f"{title}, {scale.unit}", scale, tuple(marks))


def _value(row: Row, name: str, limit: slo.Limit | None, factor: float) -> _Value:
    bounded = row.limited(limit)
    if bounded is None or limit is None:
        usual = name.replace("median", "p50")
        is_kept = usual in (*SWEEP_LATENCIES, *WHOLE_LATENCIES)
        value = row.runs[0].latency_ms.named(usual) if is_kept else None
        return _Value(row, value, None, row.judged.met)
    ends = tuple(math.inf if end is None else factor * end for end in (bounded.low, bounded.high))
    value = (
        factor * bounded.value if bounded.value is not None else math.inf if row.failed else None
    )
    is_beyond = value is None or value > factor * limit.threshold
    misses_anyway = (
        bounded.met is None and row.judged.met is False and row.judged.why is not None and is_beyond
    )
    unjudged = row.judged.met is None and not row.confirms
    met = False if misses_anyway else None if unjudged else bounded.met
    return _Value(row, value, None if math.isinf(ends[0]) else (ends[0], ends[1]), met)


def _ring(values: Sequence[_Value], series: Series) -> Iterator[Dots]:
    best = series.found.level if series.found is not None else series.knee
    name = "found" if series.found is not None else "knee"
    for value in values:
        if value.row.level == best and value.value is not None:
            yield Dots(name, [value.row.level], [value.value], "ring")
            return


def _level_names(values: Sequence[_Value], series: Series) -> Iterator[Whiskers]:
    answer = series.found
    best, fails = (answer.level, answer.fails) if answer is not None else (series.knee, None)
    at = {value.row.level: value for value in values if value.value is not None}
    for level, below in ((best, True), (fails, False)):
        if isinstance(level, int | float) and level in at:
            value = at[level]
            low, high = value.bounds or (value.value or 0.0,) * 2
            text = level_text(value.row.level)
            is_below = below or math.isinf(high)  # the name of a bar that goes on above the chart
            yield Whiskers("", [value.row.level], [low], [high], labels=[text], below=is_below)


def _dots(values: Sequence[_Value], scale: Scale) -> Iterator[Dots]:
    """Draw the values: of each kind of outcome with a shape of its own, and those on failed
    requests at the top.
    """
    for met, (look, name) in LOOKS.items():
        alike = [value for value in values if value.value is not None and value.met is met]
        if not alike:
            continue
        confirms = met is None and alike[0].row.confirms
        ys = [value.value or 0.0 for value in alike]
        texts = ["on failed requests" if math.isinf(y) else scale.written(y) for y in ys]
        yield Dots(
            "undecided" if confirms else name,
            [value.row.level for value in alike],
            ys,
            look,
            texts=texts,
        )


def _marks(places: Sequence[_Place], front: Sequence[_Place], scale: Linear) -> Iterator[Mark]:
    yield Curve("", [place.user for place in front], [place.gpu for place in front])
    invalid = [place for place in places if place.row.verdict == Verdict.INVALID]
    exceeded = [place for place in places if place not in front and place not in invalid]
    kinds: tuple[tuple[str, Look, Sequence[_Place]], ...] = (
        ("Pareto front", "first", front),
        ("below the front", "open", exceeded),
        (Verdict.INVALID, "missed", invalid),
    )
    for name, look, alike in kinds:
        if alike:
            users, gpus, shown = zip(*alike, strict=True)
            levels = [level_text(row.level) for row in shown]
            written = zip(levels, map(scale.written, gpus), strict=True)
            labels = levels if len(places) <= MAX_LABELS else ()
            yield Dots(name, users, gpus, look, labels, list(map(": ".join, written)))
