"""SVG: a chart drawn, in colours that the page around it chooses, and what its readout says."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from textwrap import wrap

from loadgen.document.charts import marks
from loadgen.document.charts.chart import Chart, Curve, Heat, Mark, Panel
from loadgen.document.charts.plot import BOLD_LETTER, NARROW, WIDE, Layout, Plot, text
from loadgen.document.charts.scale import Names
from loadgen.util.terminal_text import printable

GAP = 12  # between panels
ABOVE = 6  # between the words of a panel and its plot
SAMPLE = 24  # the width of a sample in the legend, with the space behind it
APART = 14  # between the names in a legend
SEPARATOR = "|"  # of the texts of a row in the readout


def svg(chart: Chart, key: str) -> str:
    """The chart as two elements of a page, for wide and for narrow screens; their style is in
    `templates/charts.css`.

    Args:
        chart: What is drawn.
        key: A word that no other chart of the page has: its ids begin so.
    """
    return "".join(_Picture(chart, layout, key).svg() for layout in (WIDE, NARROW))


def svg_file(chart: Chart, style: str) -> str:
    """The chart as a file of its own.

    Args:
        chart: What is drawn.
        style: Rules of CSS.
    """
    paper = f'<style>{style}</style><rect class="paper" width="100%" height="100%"/>'
    drawn = _Picture(chart, WIDE, "chart").svg(paper)
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def readout(chart: Chart) -> str:
    """Return the tooltip of each stop, as JSON that may stand inside HTML; empty if there is no
    stop.

    That is: `at`, the places of the stops as shares of the plot; `along`, their words; `rows`,
    [name, words at each stop].
    """
    if not chart.stops:
        return ""
    tooltips = {
        "at": [round(chart.scale.share(stop), 4) for stop in chart.stops],
        "along": SEPARATOR.join(chart.scale.written(stop) for stop in chart.stops),
        "rows": [
            [printable(name), printable(SEPARATOR.join(texts))]
            for name, texts in chart.tooltip_rows()
        ],
    }
    return json.dumps(tooltips, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")


@dataclass
class _Picture:
    """A chart in one layout.

    Attributes:
        chart: What is drawn.
        layout: For which screens.
        key: Its ids begin so.
        height: How far it has been drawn from above, in pixels.
    """

    chart: Chart
    layout: Layout
    key: str
    height: float = field(default=0.0, init=False)

    def svg(self, style: str = "") -> str:
        """Write it as an element that begins with a style."""
        panels = "".join(
            chain.from_iterable(
                self._panel(panel, f"{self.key}-{number}")
                for number, panel in enumerate(self.chart.panels)
            )
        )
        below = "".join(self._below())
        about = text(f"{self.chart.title}: {self.chart.about}")
        return (
            f'<svg class="chart {self.layout.name}" viewBox="0 0 {self.layout.width} '
            f'{self.height:g}" font-size="{self.layout.font}" role="img" aria-label="{about}">'
            f"{style}{panels}{below}</svg>"
        )

    def _left(self) -> float:
        """Return where plots begin: further right if names stand on a vertical axis."""
        axes = (panel.scale for panel in self.chart.panels)
        names = chain.from_iterable(axis.names for axis in axes if isinstance(axis, Names))
        longest = max((self.layout.width_of(self.layout.cut(name)) for name in names), default=0.0)
        return round(max(3.6 * self.layout.font, longest + 10), 1)

    def _panel(self, panel: Panel, key: str) -> Iterator[str]:
        yield from self._words(panel, key)
        self.height += ABOVE
        top = round(self.height, 1)
        self.height = top + panel.height
        plot = Plot(self.layout, self._left(), top, self.height, self.chart.scale, panel.scale, key)
        lines = "".join(
            f"M{plot.x(value):.1f} {top:g}V{plot.bottom:g}" for value, _ in plot.across.ticks()
        )
        for value, words in panel.scale.ticks():
            if not isinstance(panel.scale, Names):
                lines += f"M{plot.left:g} {plot.y(value):.1f}H{self.layout.right}"
            yield (
                f'<text x="{plot.left - 6:g}" y="{plot.y(value) + 4:.1f}" text-anchor="end">'
                f"{text(self.layout.cut(words))}</text>"
            )
        yield (
            f'<path class="grid" d="{lines}"/><path class="axis" d="M{plot.left:g} '
            f'{top:g}V{plot.bottom:g}H{self.layout.right}"/>'
        )
        for number, mark in enumerate(panel.marks):
            yield from marks.drawn(mark, plot, number)
        self.height += GAP

    def _words(self, panel: Panel, key: str) -> Iterator[str]:
        """Write the title, and the legend beside it; below it if there is no room for all."""
        layout = self.layout
        x = float(layout.width)
        for line in wrap(panel.title, int(layout.width / layout.width_of("m", BOLD_LETTER))):
            self.height += layout.row
            x = layout.width_of(line, BOLD_LETTER) + 2 * APART
            yield f'<text x="0" y="{self.height - 4:.1f}" class="title">{text(line)}</text>'
        named = [
            mark for mark in panel.marks if mark.name and not panel.title.startswith(mark.name)
        ]
        if len(named) == 1 and isinstance(named[0], Curve):
            return  # the title says what it is
        widths = [SAMPLE + layout.width_of(_name(mark)) + APART for mark in named]
        if x + sum(widths) > layout.width:
            x = float(layout.width)
        for mark, width in zip(named, widths, strict=True):
            if x + width > layout.width + APART:
                self.height += layout.row
                x = 0.0
            y = self.height - 4
            yield from marks.sample(mark, x, y - 4, f"{layout.name}-{key}-key")
            yield f'<text x="{x + SAMPLE:.1f}" y="{y:.1f}">{text(_name(mark))}</text>'
            x += width

    def _below(self) -> Iterator[str]:
        """Write the ticks and the name of the horizontal axis, and the cursor of the readout."""
        layout, scale = self.layout, self.chart.scale
        left, bottom = self._left(), self.height - GAP
        y = f"{bottom + 1.3 * layout.font:.1f}"
        for value, words in scale.ticks():
            x = left + (layout.right - left) * scale.share(value)
            half = layout.width_of(words) / 2
            yield (
                f'<text x="{min(x, layout.width - half):.1f}" y="{y}" text-anchor="middle">'
                f"{text(words)}</text>"
            )
        self.height = bottom + 1.4 * layout.font
        for line in wrap(self.chart.along, int(layout.width / layout.width_of("m"))):
            self.height = round(self.height + layout.row, 1)
            yield (
                f'<text x="{layout.right}" y="{self.height - 4:.1f}" text-anchor="end" '
                f'class="label">{text(line)}</text>'
            )
        if self.chart.stops:
            yield f'<path class="cursor" data-left="{left:g}" data-right="{layout.right}" d="M0 0V'
            yield f'{bottom:g}"/>'


def _name(mark: Mark) -> str:
    return f"{mark.name}: 1 to {mark.most} a cell" if isinstance(mark, Heat) else mark.name
