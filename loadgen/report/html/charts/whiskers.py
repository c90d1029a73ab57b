"""Whiskers: the bounds of values, as lines with a cap at each end that is known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import Literal

from loadgen.report.html.charts.scale import Scale, ToPixels
from loadgen.util.terminal_text import printable

CAP = 3.5  # half as long as a cap
GAP = 9  # between an end and its label: beyond a ring around a value near the end
LETTER_HEIGHT = 9
WhiskerLook = Literal["plain", "gain", "loss", "other"]


@dataclass(frozen=True, slots=True)
class Whiskers:
    """The bounds of values.

    Attributes:
        name: Name in the legend; empty: none.
        at: Places of the whiskers: on the horizontal axis, or on the vertical one if they lie across.
        lows, highs: Their ends; infinite: the end is unknown, and beyond the axis.
        look: Their colour.
        across: Whether they are horizontal.
        values: The values whose bounds they are, drawn as dots; none, or as many as whiskers.
        labels: Text at each; none, or as many as whiskers. It stands above the upper end, or behind the right one.
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
        """Write the bounds at a place; empty where there are none, and of whiskers that lie across."""
        ends = zip(self.at, self.lows, self.highs, strict=True)
        return "" if self.across else ", ".join(_range(low, high, scale) for x, low, high in ends if x == at)

    def drawn(self, x: ToPixels, y: ToPixels) -> Iterator[str]:
        """Draw them as SVG.

        Args:
            x, y: Convert a value of either axis to pixels.
        """
        for number, (at, low, high) in enumerate(zip(self.at, self.lows, self.highs, strict=True)):
            ends = [(x(end), y(at)) if self.across else (x(at), y(end)) for end in (low, high)]
            caps = "".join(self._cap(*place) for place, end in zip(ends, (low, high), strict=True) if isfinite(end))
            (left, bottom), (right, top) = ends
            yield f'<path class="whisker {self.look}" d="M{left:.1f} {bottom:.1f}L{right:.1f} {top:.1f}{caps}"/>'
            if self.values:
                value = self.values[number]
                place = (x(value), y(at)) if self.across else (x(at), y(value))
                yield f'<circle class="center {self.look}" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="3.5"/>'
            if self.labels and self.labels[number]:
                yield self._label(self.labels[number], *ends[0 if self.below else 1])

    def sample(self, left: float, middle: float) -> str:
        """Draw one for the legend."""
        ends = f"{self._cap(left + 3, middle)}{self._cap(left + 19, middle)}"
        if not self.across:
            ends = f"{self._cap(left + 12, middle - 6)}{self._cap(left + 12, middle + 6)}"
            return f'<path class="whisker {self.look}" d="M{left + 12:.1f} {middle - 6}v12{ends}"/>'
        return f'<path class="whisker {self.look}" d="M{left + 3:.1f} {middle}h16{ends}"/>'

    def _cap(self, x: float, y: float) -> str:
        if self.across:
            return f"M{x:.1f} {y - CAP:.1f}v{2 * CAP:g}"
        return f"M{x - CAP:.1f} {y:.1f}h{2 * CAP:g}"

    def _label(self, label: str, x: float, y: float) -> str:
        if self.across:
            place, anchor = (x + GAP, y + 4), "start"
        else:
            place, anchor = (x, y + GAP + LETTER_HEIGHT if self.below else y - GAP), "middle"
        text = escape(printable(label))
        return f'<text class="callout" x="{place[0]:.1f}" y="{place[1]:.1f}" text-anchor="{anchor}">{text}</text>'


def _range(low: float, high: float, scale: Scale) -> str:
    if not isfinite(high):
        return f"> {scale.written(low)}"
    return f"< {scale.written(high)}" if not isfinite(low) else f"{scale.written(low)} to {scale.written(high)}"
