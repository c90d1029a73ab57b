"""Load curve: the values that the SLO limits, or TTFT and TPOT, over the levels of several runs at one server."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from loadgen.config import slo
from loadgen.report.html import Chart, Curve, Dots, Limit, Linear, Log, Mark, Panel, Whiskers, fitting_scale
from loadgen.report.html.charts.chart import Look
from loadgen.report.html.charts.scale import Scale
from loadgen.report.result.series import Series
from loadgen.report.series import UNITS, level_text
from loadgen.report.series_rows import INTERVAL, SWEEP_LATENCIES, WHOLE_LATENCIES, Row, heading, rows, streams
from loadgen.util.number_format import plural

LOOKS: dict[bool | None, tuple[Look, str]] = {
    True: ("met", "met"),
    False: ("missed", "missed"),
    None: ("open", "not judged"),
}
DEFAULT_LATENCIES = ("ttft_p99", "tpot_p99")  # of a sweep without an SLO
HIGH, MIDDLE, LOW = 190, 150, 80  # of the first panel, alone or beside one; of it beside more; of the others
LOG_AXIS_RATIO = 20  # times: levels beyond that stand on a logarithmic axis
PERCENT = 100.0


def load_chart(series: Series) -> Chart | None:
    """Draw a panel for each value that the SLO limits, first those that the level above the answer misses.

    A sweep has a panel of its throughput, too. The level that was found, or the knee, has a ring and its name; a search
    has the bounds of all values. None where no run has such a value.
    """
    shown = [row for row in rows(series) if math.isfinite(row.level) and row.level > 0]
    levels = sorted({row.level for row in shown})
    panels: list[Panel] = []
    for name, limit in _names(series, shown):
        panels += _panel(name, limit, shown, series, names_levels=not panels)
    if not panels:
        return None
    if series.kind == "sweep":
        panels += _throughput(shown)
    heights = (HIGH if len(panels) < 3 else MIDDLE, *[LOW] * (len(panels) - 1))
    panels = [replace(panel, height=height) for panel, height in zip(panels, heights, strict=True)]
    unit = UNITS[series.over]
    about = f"{', '.join(panel.title for panel in panels)} at {plural(len(levels), 'level')} of {unit}"
    return Chart("What each load level came to", about, unit, _axis(unit, levels), tuple(panels), levels)


def _axis(unit: str, levels: Sequence[float]) -> Scale:
    if levels[-1] > LOG_AXIS_RATIO * levels[0]:
        return Log.over(unit, levels)
    around = Linear.around(unit, levels)
    return replace(around, low=max(0.0, around.low))


def _names(series: Series, shown: Sequence[Row]) -> list[tuple[str, slo.Limit | None]]:
    """List what has a panel: the limits of the SLO, those first that the level above the answer does not meet."""
    if not series.slo:
        return [(name, None) for name in (DEFAULT_LATENCIES if streams(series) else WHOLE_LATENCIES)]
    limits = slo.required_limits(series.slo)
    failing = series.found.fails if series.found is not None else None
    edge = {each.limit: each.met for row in shown if row.level == failing for each in row.judged.slo}
    return [(limit.name, limit) for limit in sorted(limits, key=lambda limit: edge.get(limit.text, False) is True)]


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


def _panel(
    name: str, limit: slo.Limit | None, shown: Sequence[Row], series: Series, *, names_levels: bool
) -> Iterator[Panel]:
    is_rate = limit is not None and limit.metric == "error"
    values = [_value(row, name, limit, PERCENT if is_rate else 1.0) for row in shown]
    if not any(each.value for each in values):
        return
    numbers = (number for each in values for number in (each.value, *(each.bounds or ())))
    known = [number for number in numbers if number is not None and math.isfinite(number)]
    marks: list[Mark] = []
    if limit is not None:
        threshold = limit.threshold * (PERCENT if is_rate else 1.0)
        known.append(threshold)
        marks.append(Limit(f"limit: {limit.text}", threshold))
    scale = fitting_scale("%" if is_rate else "ms", known)
    ys = [None if each.value is None or math.isinf(each.value) else each.value for each in values]
    marks += [Curve("", [each.row.level for each in values], ys), *_whiskers(values), *_ring(values, series)]
    marks += [*_dots(values, scale), *(_level_names(values, series) if names_levels else ())]
    title = "Failed requests" if is_rate else heading(name)
    yield Panel(f"{title}, {scale.unit}", scale, tuple(marks))


def _value(row: Row, name: str, limit: slo.Limit | None, factor: float) -> _Value:
    found = next((each for each in row.judged.slo if limit is not None and each.limit == limit.text), None)
    if found is None or limit is None:
        usual = name.replace("median", "p50")
        return _Value(
            row,
            row.runs[0].latency_ms.named(usual) if usual in (*SWEEP_LATENCIES, *WHOLE_LATENCIES) else None,
            None,
            row.judged.met,
        )
    ends = tuple(math.inf if end is None else factor * end for end in (found.low, found.high))
    value = factor * found.value if found.value is not None else math.inf if row.failed else None
    is_beyond = value is None or value > factor * limit.threshold
    misses_anyway = found.met is None and row.judged.met is False and row.judged.why is not None and is_beyond
    unjudged = row.judged.met is None and not row.confirms
    met = False if misses_anyway else None if unjudged else found.met
    return _Value(row, value, None if math.isinf(ends[0]) else (ends[0], ends[1]), met)


def _whiskers(values: Sequence[_Value]) -> Iterator[Whiskers]:
    known = [(each.row.level, *each.bounds) for each in values if each.bounds is not None]
    if known:
        levels, lows, highs = zip(*known, strict=True)
        yield Whiskers(INTERVAL, levels, lows, highs)


def _ring(values: Sequence[_Value], series: Series) -> Iterator[Dots]:
    best = series.found.level if series.found is not None else series.knee
    for each in values:
        if each.row.level == best and each.value is not None:
            yield Dots("found" if series.found is not None else "knee", [each.row.level], [each.value], "ring")
            return


def _level_names(values: Sequence[_Value], series: Series) -> Iterator[Whiskers]:
    found = series.found
    best, fails = (found.level, found.fails) if found is not None else (series.knee, None)
    at = {each.row.level: each for each in values if each.value is not None}
    for level, below in ((best, True), (fails, False)):
        if isinstance(level, int | float) and level in at:
            yield _label(at[level], below=below)


def _label(value: _Value, *, below: bool) -> Whiskers:
    low, high = value.bounds or (value.value or 0.0,) * 2
    level = value.row.level
    return Whiskers("", [level], [low], [high], labels=[level_text(level)], below=below)


def _dots(values: Sequence[_Value], scale: Scale) -> Iterator[Dots]:
    """Draw the values: of each kind of outcome with a shape of its own, and those on failed requests at the top."""
    for met, (look, name) in LOOKS.items():
        own = [each for each in values if each.value is not None and each.met is met]
        if not own:
            continue
        confirms = met is None and own[0].row.confirms
        texts = [_text(each, scale) for each in own]
        ys = [each.value or 0.0 for each in own]
        yield Dots("not confirmed" if confirms else name, [each.row.level for each in own], ys, look, texts=texts)


def _text(value: _Value, scale: Scale) -> str:
    if value.value is None or math.isinf(value.value):
        return "on failed requests"
    return scale.written(value.value)


def _throughput(shown: Sequence[Row]) -> Iterator[Panel]:
    values = [(row.level, row.throughput("output_throughput")) for row in shown]
    known = [(level, value) for level, value in values if value is not None]
    if known:
        levels, ys = zip(*known, strict=True)
        scale = Linear.over("tok/s", ys)
        yield Panel("Output tokens/s", scale, (Curve("output", levels, ys), Dots("", levels, ys, "first")))
