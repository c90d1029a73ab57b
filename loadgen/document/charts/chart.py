"""Chart: panels above each other that share an axis, as data: what is drawn, and not how."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from loadgen.document.charts.scale import Scale
from loadgen.util.number_format import value_range

WhiskerLook = Literal["plain", "gain", "loss", "other"]
# Differ in shape or fill, not in colour alone.
Look = Literal["met", "missed", "open", "ring", "first", "second"]
BarLook = Literal["base", "first", "gain", "loss"]


class _Wordless:
    """A mark that says nothing at a place: its name or its labels say it."""

    __slots__ = ()

    def text(self, at: float, scale: Scale) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points.

    Attributes:
        name: What it is of.
        xs: Where its points stand, ascending.
        ys: Their values; None: there is none, and the line has a gap.
        colour: 1 to 6; lines of other colours have other dashes.
        steps: Whether a value holds from its point to the next one, instead of being one of a
            straight line.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float | None]
    colour: int = 1
    steps: bool = False

    def text(self, at: float, scale: Scale) -> str:
        """What it is at a place, in words; empty where it is nothing."""
        number = bisect_right(self.xs, at) - 1
        value = self.ys[number] if 0 <= number < len(self.ys) else None
        return "" if value is None else scale.written(value)


@dataclass(frozen=True, slots=True)
class Dots:
    """Points by themselves.

    Attributes:
        name: What they are; empty: the legend does not name them.
        xs, ys: Where they stand.
        look: Their shape.
        labels: What stands beside each; none, or as many as points.
        texts: What each of them is in words; none, or as many as points.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    look: Look
    labels: Sequence[str] = ()
    texts: Sequence[str] = ()

    def text(self, at: float, scale: Scale) -> str:
        """All that stands at a place, in words; empty where nothing does."""
        return ", ".join(text for x, text in zip(self.xs, self.texts, strict=False) if x == at)


@dataclass(frozen=True, slots=True)
class Scatter:
    """Many points, one for each of many requests.

    Attributes:
        name: What they are.
        xs, ys: Where they stand; `xs` ascending.
        reach: A reader at a place is told of all points that are not further away than this.
        failed: Whether they are crosses instead of dots.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    reach: float
    failed: bool = False

    def text(self, at: float, scale: Scale) -> str:
        """Write the range of the values near a place, and how many there are; empty where there
        are none.
        """
        values = self.ys[
            bisect_left(self.xs, at - self.reach) : bisect_right(self.xs, at + self.reach)
        ]
        if not values:
            return ""
        ends = map(scale.written, (min(values), max(values)))
        return f"{value_range(*ends)} ({len(values)})"


@dataclass(frozen=True, slots=True)
class Band(_Wordless):
    """The area between two lines, within which a value lies.

    Attributes:
        name: What it is.
        xs: Where the points of the lines stand, ascending.
        lows, highs: Their values.
    """

    name: str
    xs: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]


@dataclass(frozen=True, slots=True)
class Bars(_Wordless):
    """Horizontal bars on a vertical axis of names.

    Attributes:
        name: Name in the legend; empty: none.
        ys: Place of each bar on the vertical axis.
        lows, highs: Where each bar begins and ends on the horizontal axis.
        look: Colour.
        labels: Text behind each bar.
        thickness: Height of a bar as a share of the distance between two names.
    """

    name: str
    ys: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    look: BarLook
    labels: Sequence[str]
    thickness: float = 0.6


@dataclass(frozen=True, slots=True)
class Limit(_Wordless):
    """A value that is not to be exceeded, across the panel.

    Attributes:
        name: Its name in the legend.
        y: The value.
    """

    name: str
    y: float


@dataclass(frozen=True, slots=True)
class Heat:
    """How many values fell into each cell of a grid.

    Attributes:
        name: What is counted.
        low, high: Where the first column begins and the last one ends, on the shared axis.
        edges: The edges of the rows, ascending; one more than there are rows.
        counts: By column and row.
    """

    name: str
    low: float
    high: float
    edges: Sequence[float]
    counts: Sequence[Sequence[int]]

    @property
    def most(self) -> int:
        """The count of the fullest cell."""
        return max((max(column, default=0) for column in self.counts), default=0)

    def text(self, at: float, scale: Scale) -> str:
        """How many there are in the column of a place."""
        column = int((at - self.low) / (self.high - self.low) * len(self.counts))
        return f"{sum(self.counts[column])}" if 0 <= column < len(self.counts) else ""


@dataclass(frozen=True, slots=True)
class Whiskers:
    """The bounds of values.

    Attributes:
        name: Name in the legend; empty: none.
        at: Places of the whiskers: on the horizontal axis, or on the vertical one if they lie
            across.
        lows, highs: Their ends; infinite: the end is unknown, and beyond the axis.
        look: Their colour.
        across: Whether they are horizontal.
        values: The values whose bounds they are, drawn as dots; none, or as many as whiskers.
        labels: Text at each; none, or as many as whiskers. It stands above the upper end, or behind
            the right one.
        below: Whether it stands below the lower end instead.
    """

    name: str
    at: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    look: WhiskerLook = "plain"
    across: bool = False
    values: Sequence[float] = ()
    labels: Sequence[str] = ()
    below: bool = False

    def text(self, at: float, scale: Scale) -> str:
        """Write the bounds at a place; empty where there are none, and of whiskers that lie
        across.
        """
        texts = []
        for x, low, high in zip(self.at, self.lows, self.highs, strict=True):
            if self.across or x != at:
                continue
            if not isfinite(high):
                texts.append(f"> {scale.written(low)}")
            elif not isfinite(low):
                texts.append(f"< {scale.written(high)}")
            else:
                texts.append(f"{scale.written(low)} to {scale.written(high)}")
        return ", ".join(texts)


Mark = Curve | Dots | Scatter | Band | Bars | Limit | Heat | Whiskers


@dataclass(frozen=True, slots=True)
class Panel:
    """What stands between two axes.

    Attributes:
        title: What stands above it.
        scale: Its vertical axis.
        marks: What is drawn, the first below the others.
        height: The height of the plot, in pixels of the drawing.
    """

    title: str
    scale: Scale
    marks: tuple[Mark, ...]
    height: int = 90


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels above each other.

    Attributes:
        title: What it is, in a few words.
        about: What can be seen in it, for who cannot see it.
        along: What the horizontal axis of all panels is, with its unit.
        scale: That axis.
        panels: From above; one at least.
        stops: Places on that axis that have a tooltip, ascending.
    """

    title: str
    about: str
    along: str
    scale: Scale
    panels: tuple[Panel, ...]
    stops: Sequence[float] = ()

    def tooltip_rows(self) -> list[tuple[str, list[str]]]:
        """Every mark that says something at a stop: its name, and its words at each of the
        stops.
        """
        rows = []
        for panel in self.panels:
            for mark in panel.marks:
                texts = [mark.text(stop, panel.scale) for stop in self.stops]
                if mark.name and any(texts):
                    rows.append((mark.name, texts))
        return rows
