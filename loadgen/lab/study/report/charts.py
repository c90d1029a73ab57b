"""The charts of a report; a chart without data is left out."""

import itertools
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from loadgen.core.histogram import Histogram
from loadgen.document import Drawing
from loadgen.document.charts.chart import BarLook, Bars, Chart, Curve, Dots, Look, Panel
from loadgen.document.charts.scale import Linear, Names, Nines
from loadgen.errors import BadInput
from loadgen.lab.study.execute.arm_result import ArmResult, WorkloadResult
from loadgen.lab.study.execute.trial import WorkloadRun
from loadgen.lab.study.report.report_model import ReportModel
from loadgen.report.result.latencies import percentiles_by_nines
from loadgen.report.run_page.load_curve import pareto_front
from loadgen.util.number_format import brief, percent, signed

ROW = 26  # pixels of a row of names
EDGE = 14  # pixels above and below all rows
LABEL_SPACE = 1.35  # a horizontal axis is longer than its bars by this factor, for their labels
MAX_LABELS = 6  # points of a scatter with a label
OTHERS = "other arms"  # in a scatter, without baseline and winner
POINTS_PER_DECADE = 24  # of a percentile curve: from 90 to 99 %, and from there to 99.9 %
# Histograms, from when a request was due.
LATENCIES = {"ttft_due": "TTFT", "tpot": "TPOT", "e2el_due": "E2EL"}


def drawings(model: ReportModel, folder: Path) -> dict[str, Drawing]:
    """Return the charts by name: cases, waterfall, latencies, pareto, noise.

    Args:
        model: Contents of the report.
        folder: Folder of the store, which has the whole results.

    Raises:
        BadInput: A result cannot be read.
    """
    charts: dict[str, Chart | None] = {"pareto": _pareto(model), "noise": _noise(model)}
    if model.baseline is not None and model.baseline.workloads:
        charts["cases"] = _cases(model, model.baseline)
        charts["waterfall"] = _waterfall(model, model.baseline)
        charts["latencies"] = _latencies(model, model.baseline, folder)
    return {name: Drawing(name, chart) for name, chart in charts.items() if chart is not None}


def _cases(model: ReportModel, baseline: ArmResult) -> Chart | None:
    shown: list[str] = []
    bars: dict[str, list[tuple[float, float, str]]] = {"baseline": [], "optimized": []}
    for name in model.workloads:
        base = baseline.workloads.get(name)
        if base is None or not base.achieved:
            continue
        place = len(shown)
        shown.append(name)
        winner = model.winner.workloads.get(name) if model.winner else None
        offset = 0.0
        if winner is not None and winner.achieved is not None:
            offset = 0.2
            change = f" ({signed(winner.difference.share)})" if winner.difference else ""
            share = 100 * winner.achieved / base.achieved
            bars["optimized"].append((place + offset, share, f"{brief(winner.achieved)}{change}"))
        bars["baseline"].append((place - offset, 100.0, brief(base.achieved)))
    if not shown:
        return None
    drawn = {name: rows for name, rows in bars.items() if rows}
    marks = []
    for name, rows in drawn.items():
        places, shares, labels = map(list, zip(*rows, strict=True))
        marks.append(
            Bars(
                name,
                places,
                [0.0] * len(rows),
                shares,
                "base" if name == "baseline" else "first",
                labels,
                thickness=0.36 if len(drawn) > 1 else 0.6,
            )
        )
    highest = max(max(mark.highs) for mark in marks)
    return Chart(
        title=f"{model.label} by workload",
        about=f"{model.label} of {'baseline and winner' if model.winner else 'the baseline'} on "
        f"{', '.join(shown)}",
        along="% of the baseline",
        scale=Linear.over("%", [highest * LABEL_SPACE]),
        panels=(_rows_panel(f"{model.label} ({model.unit})", shown, marks, row=44),),
    )


def _waterfall(model: ReportModel, baseline: ArmResult) -> Chart | None:
    compared = [(name, model.difference(arm)) for name, arm in model.chain.items()]
    steps = [(name, difference.share) for name, difference in compared if difference is not None]
    level = (
        baseline.workloads[model.workload].achieved
        if model.workload in baseline.workloads
        else None
    )
    if not steps or level is None:
        return None
    bars = {"baseline": Bars("", [0], [0.0], [level], "base", [brief(level)])}
    for name, share in steps:
        low, high = sorted((level, level * (1 + share)))
        look: BarLook = "gain" if (share > 0) == model.more_is_better else "loss"
        bars[name] = Bars("", [len(bars)], [low], [high], look, [signed(share)])
        level *= 1 + share
    final = (
        model.finalist.workloads.get(model.workload)
        if model.finalist and model.confirmation
        else None
    )
    if final is not None and final.achieved is not None:
        name = "winner, single run" if model.published else "confirmation"
        bars[name] = Bars(
            "", [len(bars)], [0.0], [final.achieved], "first", [brief(final.achieved)]
        )
    return Chart(
        title="From the baseline to the winner",
        about=f"Change of the {model.label} by each arm from the baseline to the winner",
        along=model.unit,
        scale=Linear.over(model.unit, [max(bar.highs[0] for bar in bars.values()) * LABEL_SPACE]),
        panels=(_rows_panel(f"{model.label} ({model.unit})", list(bars), list(bars.values())),),
    )


def _pareto(model: ReportModel) -> Chart | None:
    points = {}
    for identity, (name, result) in model.configurations.items():
        if result.user_tps is not None and result.gpu_tps is not None:
            label = name if len(name) <= 40 else f"{name[:39]}\N{HORIZONTAL ELLIPSIS}"
            points[identity] = (label, result.user_tps, result.gpu_tps)
    if len(points) < 2:
        return None
    roles = {
        arm.planned.identity: role
        for role, arm in (("winner", model.winner), ("baseline", model.baseline))
        if arm
    }
    frontier = pareto_front({identity: (user, gpu) for identity, (_, user, gpu) in points.items()})
    labelled = [identity for identity in frontier if identity not in roles][
        : MAX_LABELS - len(roles)
    ]
    marks: list[Curve | Dots] = [
        Curve(
            "Pareto frontier", *_columns([points[identity][1:] for identity in frontier]), colour=2
        )
    ]
    looks: dict[str, Look] = {OTHERS: "open", "baseline": "second", "winner": "first"}
    for role, look in looks.items():
        shown = [identity for identity in points if roles.get(identity, OTHERS) == role]
        labels = [points[identity][0] if identity in labelled else "" for identity in shown]
        if shown:
            marks.append(
                Dots(role, *_columns([points[identity][1:] for identity in shown]), look, labels)
            )
    xs, ys = _columns([point[1:] for point in points.values()])
    return Chart(
        title="Speed for a user and throughput of a device",
        about="Output tokens/s that a user sees against output tokens/s of a device, for every "
        "configuration",
        along="output tokens/s that a user sees (1000 / median TPOT)",
        scale=Linear.around("tok/s", xs),
        panels=(
            Panel(
                "Output tokens/s of a device", Linear.around("tok/s", ys), tuple(marks), height=260
            ),
        ),
    )


def _noise(model: ReportModel) -> Chart | None:
    rows: dict[str, list[float]] = {}
    for step in model.steps:
        for arm in step.arms:
            if len(arm.values) > 1:
                mean = statistics.fmean(arm.values)
                rows.setdefault(step.name, []).extend(
                    100 * (value / mean - 1) for value in arm.values
                )
    if not rows:
        return None
    least = 100 * model.study.decision.min_effect
    places: list[float] = []
    values: list[float] = []
    for place, deviations in enumerate(rows.values()):
        places += [place] * len(deviations)
        values += deviations
    ends = (-0.5, len(rows) - 0.5)
    limits = tuple(Curve("", [x, x], ends, colour=2) for x in (-least, least))
    title = f"Starts of the same arm (dashed: the minimum effect, {percent(least / 100, 1)})"
    return Chart(
        title="Noise of starts",
        about="Deviation of starts of the same arm from their mean, step by step",
        along="% from the mean of the arm",
        scale=Linear.around("%", [*values, -least, least]),
        panels=(_rows_panel(title, list(rows), (*limits, Dots("", values, places, "open"))),),
    )


def _latencies(model: ReportModel, baseline: ArmResult, folder: Path) -> Chart | None:
    arms = {"baseline": baseline} | ({"optimized": model.winner} if model.winner else {})
    latencies: dict[str, dict[str, Histogram]] = {}
    for name, arm in arms.items():
        result = arm.workloads.get(model.workload)
        for title, histogram in _histograms(folder, result).items():
            latencies.setdefault(title, {})[name] = histogram
    if not latencies:
        return None
    most = 1.0  # nines
    for histograms in latencies.values():
        most = max(most, *(math.log10(histogram.count) for histogram in histograms.values()))
    places = [
        *(number / POINTS_PER_DECADE for number in range(1, math.ceil(most * POINTS_PER_DECADE))),
        most,
    ]
    panels = []
    for title, histograms in latencies.items():
        curves = tuple(
            Curve(
                name,
                places,
                percentiles_by_nines(histogram, places),
                colour=1 if name == "optimized" else 6,
            )
            for name, histogram in histograms.items()
        )
        scale = Linear.over("ms", list(itertools.chain.from_iterable(curve.ys for curve in curves)))
        panels.append(Panel(f"{title}, ms", scale, curves, height=110))
    return Chart(
        title="Latency by percentile",
        about=f"Percentiles of {', '.join(latencies)} on {model.workload}, of the median start of "
        "each arm",
        along="percentile",
        scale=Nines(most),
        panels=tuple(panels),
        stops=places,
    )


def _histograms(folder: Path, result: WorkloadResult | None) -> dict[str, Histogram]:
    """Return the latency histograms of a result's median run; none if its file is missing or of
    another tool.

    Raises:
        BadInput: The file cannot be read.
    """
    run: WorkloadRun | None = result.middle if result else None
    if run is None or not (path := folder / run.path).is_file():
        return {}
    try:
        saved = orjson.loads(path.read_bytes())["loadgen"].get("histograms", {})
        histograms = {title: saved.get(name, {}) for name, title in LATENCIES.items()}
        return {
            title: Histogram.from_dict(data)
            for title, data in histograms.items()
            if data.get("count")
        }
    except (
        OSError,
        orjson.JSONDecodeError,
        KeyError,
        TypeError,
        AttributeError,
        BadInput,
    ) as error:
        problem = f"is not the whole result of a run ({error})"
        raise BadInput(
            str(path), problem, "restore it, or remove it: the report does not need it"
        ) from error


def _rows_panel(title: str, names: Sequence[str], marks: Sequence[Any], row: int = ROW) -> Panel:
    return Panel(title, Names(tuple(names)), tuple(marks), height=row * len(names) + EDGE)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
