"""Drawings as SVG, of a few shapes, in the look of loadgen's own charts: light or dark as the
reader's screen is.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from tests.helpers.source import ROOT

LOOK = ROOT / "loadgen" / "document" / "templates"
OWN = """\
.chart .bracket { fill: none; stroke: var(--c1); stroke-width: 1.5; }
.chart .token, .chart .good { fill: var(--c3); }
.chart .thought { fill: var(--c4); }
.chart .late { fill: var(--c2); }
.chart .stall { fill: var(--faint); fill-opacity: .15; }
"""
STYLE = "".join((LOOK / name).read_text() for name in ("colours.css", "charts.css")) + OWN


@dataclass
class Drawing:
    """Shapes on a sheet; lengths are pixels, from the upper left corner.

    Attributes:
        width, height: Of the sheet.
        title: What it shows, for those who cannot see it.
    """

    width: int
    height: int
    title: str
    shapes: list[str] = field(default_factory=list)

    def text(
        self,
        x: float,
        y: float,
        said: str,
        *,
        anchor: str = "middle",
        turn: float = 0,
        quiet: bool = False,
    ) -> None:
        """A line of text whose middle, start or end is at a point, turned clockwise by so many
        degrees.
        """
        turned = f' transform="rotate({turn:g} {x:g} {y:g})"' if turn else ""
        kind = "" if quiet else "label"
        self._add(
            f'<text x="{x:g}" y="{y:g}" '
            f'text-anchor="{anchor}"{_kind(kind)}{turned}>{escape(said)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "axis") -> None:
        """A straight line."""
        self._add(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"{_kind(kind)}/>')

    def box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A filled rectangle."""
        self._add(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{_kind(kind)}/>')

    def dot(self, x: float, y: float, radius: float, kind: str) -> None:
        """A filled circle."""
        self._add(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}"{_kind(kind)}/>')

    def bracket(self, x1: float, x2: float, y: float, said: str, *, beside: bool = False) -> None:
        """A bracket from `x1` to `x2`, and its name below it, or beside its right end."""
        self._add(f'<path d="M{x1:g} {y - 5:g} V{y:g} H{x2:g} V{y - 5:g}"{_kind("bracket")}/>')
        if beside:
            self.text(x2 + 6, y + 3, said, anchor="start")
        else:
            self.text((x1 + x2) / 2, y + 14, said)

    def __str__(self) -> str:
        box = f'viewBox="0 0 {self.width} {self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" class="chart">'
        paper = f'<rect class="paper" width="{self.width}" height="{self.height}" rx="6"/>'
        return _lines(
            [
                head,
                f"<title>{escape(self.title)}</title>",
                f"<style>{STYLE}</style>",
                paper,
                *self.shapes,
            ]
        )

    def _add(self, shape: str) -> None:
        self.shapes.append(shape)


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _lines(parts: Iterable[str]) -> str:
    return "\n".join([*parts, "</svg>"]) + "\n"
