"""Charts: pictures of a study as PNG, to be read at 700 px, drawn twice as fine; the same data give the same bytes.

Colours are those of Okabe and Ito, which can be told apart with any colour vision.
"""

import io
import math
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

GREY, BLUE, ORANGE, GREEN, RED, INK = "#8a8f98", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#22262e"
INCHES, DPI = 7.0, 200
SHOWN_SHARE = 0.995  # of a distribution
MOST_NAMED = 6  # points of a scatter that get their names
STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": "#b4bac4",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e9ee",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "text.color": INK,
    "text.parse_math": False,  # names may have dollar signs
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "white",
}


@dataclass(frozen=True, slots=True)
class Point:
    """A configuration in a plane: what a user sees, what a device does (tokens/s), whether its name is shown."""

    name: str
    user_tps: float
    gpu_tps: float
    colour: str = GREY
    named: bool = False


def cases(workloads: Mapping[str, tuple[float, float | None, str]], label: str) -> bytes:
    """Bars of baseline and winner side by side, one panel for each workload, since their numbers differ tenfold.

    Args:
        workloads: By name: what the baseline achieved, what the winner did (None where there is none), and their
            difference in words.
        label: Of the numbers, with their unit.
    """
    columns = min(len(workloads), 5)
    rows = math.ceil(len(workloads) / columns)
    with figure(1.9 * rows + 0.5) as drawn:
        drawn.suptitle(label, x=0.005, ha="left", fontsize=10, fontweight="bold")
        panels = drawn.subplots(rows, columns, squeeze=False).flat
        for panel in panels[len(workloads) :]:
            panel.set_axis_off()
        for panel, (name, (before, after, change)) in zip(panels, workloads.items(), strict=False):
            there = {"baseline": before} | ({} if after is None else {"optimized": after})
            bars = panel.bar(list(there), list(there.values()), color=[GREY, BLUE][: len(there)], width=0.7)
            texts = [_short(before), *([] if after is None else [f"{_short(after)}\n{change}".strip()])]
            panel.bar_label(bars, texts, padding=2, fontsize=8)
            panel.set_title(_cut(name, 18), fontsize=9)
            panel.set_yticks([])
            panel.spines["left"].set_visible(False)
            panel.tick_params(axis="x", length=0, labelsize=8)
            panel.grid(visible=False)
            panel.margins(x=0.15, y=0.28)
        return image(drawn)


def waterfall(
    start: float, rungs: Sequence[tuple[str, float]], end: float | None, label: str, *, more_is_better: bool
) -> bytes:
    """How the baseline became the winner.

    Args:
        start: What the baseline achieved.
        rungs: What was adopted, each with the share by which it changed the value before.
        end: What the winner achieved in fresh starts; None where it was not measured again.
        label: Of the numbers, with their unit.
        more_is_better: Which changes are gains.
    """
    names, level = ["baseline"], start
    bottoms, heights, colours, texts = [0.0], [start], [GREY], [_short(start)]
    for name, share in rungs:
        after = level * (1 + share)
        gains = (share > 0) == more_is_better
        names.append(_wrapped(name))
        bottoms.append(min(level, after))
        heights.append(abs(after - level))
        colours.append(GREEN if gains else RED)
        texts.append(f"{share:+.1%}")
        level = after
    if end is not None:
        names.append("measured\nafresh")
        bottoms.append(0.0)
        heights.append(end)
        colours.append(BLUE)
        texts.append(_short(end))
    with figure(3.2) as drawn:
        axes = drawn.subplots()
        bars = axes.bar(range(len(names)), heights, bottom=bottoms, color=colours, width=0.65)
        axes.bar_label(bars, texts, padding=2, fontsize=8)
        axes.set_xticks(range(len(names)), names, fontsize=8)
        axes.set_title(f"From the baseline to the winner: {label}")
        axes.grid(visible=False, axis="x")
        axes.margins(y=0.12)
        return image(drawn)


def latencies(curves: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]) -> bytes:
    """Cumulative distributions, a panel for each latency.

    Args:
        curves: By latency and by arm: values in ms, ascending, and the shares at or below them. The slowest requests
            are not shown: they would take most of the width.
    """
    with figure(2.9) as drawn:
        panels = drawn.subplots(1, len(curves), sharey=True, squeeze=False)[0]
        for panel, (name, arms) in zip(panels, curves.items(), strict=True):
            for (arm, (values, shares)), colour in zip(arms.items(), (GREY, BLUE), strict=False):
                panel.step(values, [100 * share for share in shares], where="post", label=arm, color=colour, lw=1.8)
            panel.set_title(name)
            panel.set_xlabel("ms")
            panel.set_xlim(0.0, 1.05 * max(_at(SHOWN_SHARE, *curve) for curve in arms.values()))
            panel.tick_params(labelsize=8)
        panels[0].set_ylabel("% of the values")
        drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)
        return image(drawn)


def pareto(points: Sequence[Point]) -> bytes:
    """What a user sees against what a device does, with the line of those that no other one beats in both."""
    with figure(3.6) as drawn:
        axes = drawn.subplots()
        for colour in dict.fromkeys(point.colour for point in points):
            own = [point for point in points if point.colour == colour]
            size, place = (18, 3) if colour == GREY else (60, 4)
            axes.scatter([p.user_tps for p in own], [p.gpu_tps for p in own], s=size, color=colour, zorder=place)
        edge = _frontier(points)
        axes.plot([p.user_tps for p in edge], [p.gpu_tps for p in edge], color=ORANGE, lw=1.4, zorder=2)
        shown = [point for point in points if point.named]
        shown += [point for point in edge if not point.named][: MOST_NAMED - len(shown)]
        axes.margins(0.12)
        least, most = map(float, axes.get_xlim())
        for number, point in enumerate(shown):
            across = (point.user_tps - least) / (most - least)
            side = ("left", "center", "right")[(across > 0.3) + (across > 0.7)]  # a name stays inside the picture
            _name(axes, point, above=number % 2 == 0, side=side)
        axes.set_xlabel("output tokens/s that a user sees (1000 / median TPOT)")
        axes.set_ylabel("output tokens/s of a device")
        axes.set_title("Speed for a user against speed of a device")
        return image(drawn)


def _frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other one beats in both directions, by what a user sees."""
    best, found = -math.inf, list[Point]()
    for point in sorted(points, key=lambda point: (-point.user_tps, -point.gpu_tps)):
        if point.gpu_tps > best:
            best = point.gpu_tps
            found.append(point)
    return found[::-1]


def noise(rows: Mapping[str, Sequence[float]], least: float) -> bytes:
    """How far starts of an arm are from the arm's mean.

    Args:
        rows: By step: the deviations of all its starts, as shares.
        least: The effect below which a gain is none, a share.
    """
    with figure(min(0.32, 5 / len(rows)) * len(rows) + 1.3) as drawn:
        axes = drawn.subplots()
        places = [place for place, deviations in enumerate(rows.values()) for _ in deviations]
        percents = [100 * each for deviations in rows.values() for each in deviations]
        axes.scatter(percents, places, s=16, color=BLUE, alpha=0.45)
        for end in (-100 * least, 100 * least):
            axes.axvline(end, color=ORANGE, lw=1.2, ls="--")
        axes.set_yticks(range(len(rows)), [_cut(name, 24) for name in rows], fontsize=8 if len(rows) < 20 else 5)
        axes.invert_yaxis()
        axes.set_xlabel(f"% from the arm's mean; dashed: the least effect that counts, {least:.1%}")
        axes.set_title("Starts of the same arm")
        axes.margins(y=0.15)
        return image(drawn)


@contextmanager
def figure(height: float) -> Iterator[Figure]:
    """A figure of so many inches, in the style of all."""
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in a script that the font does not have
        yield Figure(figsize=(INCHES, height), dpi=DPI, layout="constrained")


def image(drawn: Figure) -> bytes:
    """A figure as PNG, in which nothing says when or by what it was made."""
    file = io.BytesIO()
    drawn.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _name(axes: Axes, point: Point, *, above: bool, side: str) -> None:
    axes.annotate(
        _cut(point.name, 40),
        (point.user_tps, point.gpu_tps),
        xytext=(0, 7 if above else -7),
        textcoords="offset points",
        ha=side,
        va="bottom" if above else "top",
        fontsize=8,
        zorder=4,
    )


def _at(share: float, values: Sequence[float], shares: Sequence[float]) -> float:
    """The value that such a share is at or below."""
    return next(value for value, reached in zip(values, shares, strict=True) if reached >= share)


def _short(value: float) -> str:
    """Four digits at most, for which there is room above a bar."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1000 if unit == 'k' else size):.4g}{unit}"
    return f"{value:.4g}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _wrapped(name: str) -> str:
    """STAGE/ARM, each on lines of its own."""
    stage, _, arm = name.partition("/")
    return "\n".join([_cut(stage, 16), *textwrap.wrap(arm, 16, max_lines=3, placeholder="…")])
