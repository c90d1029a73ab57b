"""Plot: where the marks of a panel are drawn, in a layout for wide or for narrow screens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from loadgen.document.charts.scale import Scale
from loadgen.util.terminal_text import printable

LETTER = 0.58  # the width of a letter as a share of the height of its font, on average
BOLD_LETTER = 0.68
LABEL_GAP = 7  # between a mark and its label


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of a drawing, in pixels of its view box.

    Attributes:
        name: Class in the page, which shows one layout by the width of the screen.
        width: Width of the drawing.
        font: Height of its font. It is 12 pixels or more on any screen that shows this layout.
        max_name: Letters of a name on a vertical axis; longer names are cut.
    """

    name: str
    width: int
    font: int
    max_name: int

    @property
    def right(self) -> int:
        """Where plots end."""
        return self.width - self.font

    @property
    def row(self) -> float:
        """Height of a line of words."""
        return 1.6 * self.font

    def width_of(self, text: str, letter: float = LETTER) -> float:
        """Estimate the width of a text."""
        return len(text) * letter * self.font

    def cut(self, name: str) -> str:
        """Leave the middle out of a long name: settings often differ only at their ends."""
        half = self.max_name // 2
        is_long = len(name) > self.max_name
        return f"{name[:half]}\N{HORIZONTAL ELLIPSIS}{name[1 - half :]}" if is_long else name


WIDE = Layout("wide", 800, 12, 30)
NARROW = Layout("narrow", 330, 13, 16)


@dataclass(frozen=True, slots=True)
class Plot:
    """An area with its axes.

    Attributes:
        layout: The layout of the drawing.
        left: Where it begins.
        top, bottom: Its upper and lower edge.
        across, upright: The scales of both axes.
        key: The ids of its marks begin so.
        labels: Left and right end and baseline of each label that stands in it.
    """

    layout: Layout
    left: float
    top: float
    bottom: float
    across: Scale
    upright: Scale
    key: str
    labels: list[tuple[float, float, float]] = field(default_factory=list)

    def x(self, value: float) -> float:
        """Convert a value of the horizontal axis to pixels."""
        return self.left + (self.layout.right - self.left) * self.across.share(value)

    def y(self, value: float) -> float:
        """Convert a value of the vertical axis to pixels."""
        return self.bottom - (self.bottom - self.top) * self.upright.share(value)

    def label(self, label: str, x: float, y: float) -> Iterator[str]:
        """Write a label beside a place, and within the drawing; none where another one stands."""
        width = self.layout.width_of(label, BOLD_LETTER)
        first = min(x, self.layout.width - width)
        taken = any(
            first < right and left < first + width and abs(y - base) < self.layout.font
            for left, right, base in self.labels
        )
        if label and not taken:
            self.labels.append((first, first + width, y))
            yield f'<text class="callout" x="{first:.1f}" y="{y:.1f}">{text(label)}</text>'


def text(words: str) -> str:
    """Escape words for SVG."""
    return escape(printable(words))
