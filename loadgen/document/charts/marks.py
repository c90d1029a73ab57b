"""Marks as elements of SVG, in a plot and as samples in its legend."""

import base64
import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from loadgen.document.charts.chart import (
    Band,
    Bars,
    Curve,
    Dots,
    Heat,
    Limit,
    Look,
    Mark,
    Scatter,
    Whiskers,
)
from loadgen.document.charts.plot import BOLD_LETTER, LABEL_GAP, WIDE, Plot

SIGNATURE = b"\x89PNG\r\n\x1a\n"
FAINTEST = 48  # of 255: of a cell of the heat map with one value
MAX_ROWS = 512  # of pixels, of a heat map
CAP = 3.5  # half as long as the cap of a whisker
ARM = 3.5  # of a cross: across and down from its center
SCALE = 'transform="scale(.1)"'  # of a `_Path`


class _Path:
    """The way of a pen in whole tenths of a pixel, each step from the one before: half as long as
    in pixels.
    """

    def __init__(self) -> None:
        self.way = ""
        self._at = (0, 0)

    def go(self, command: str, x: float, y: float) -> None:
        """Move the pen (m), or draw a line (l), one across (h) or one upright (v)."""
        place = round(10 * x), round(10 * y)
        across, down = place[0] - self._at[0], place[1] - self._at[1]
        both = f"{across}{'' if down < 0 else ' '}{down}"
        self.way += command + {"h": f"{across}", "v": f"{down}"}.get(command, both)
        self._at = place


def drawn(mark: Mark, plot: Plot, number: int) -> Iterator[str]:
    """Draw a mark.

    Args:
        mark: The mark.
        plot: Where it is drawn.
        number: Its place among the marks of the plot.
    """
    x, y = plot.x, plot.y
    match mark:
        case Curve():
            yield f'<path class="line c{mark.colour}" {SCALE} d="{_line(mark, plot)}"/>'
        case Dots():
            for at, value in zip(mark.xs, mark.ys, strict=True):
                yield _dot(mark.look, x(at), y(value))
            for label, at, value in zip(mark.labels, mark.xs, mark.ys, strict=False):
                yield from plot.label(label, x(at) + LABEL_GAP, y(value) - 5)
        case Scatter():
            yield _points(zip(map(x, mark.xs), map(y, mark.ys), strict=True), failed=mark.failed)
        case Band():
            upper = zip(mark.xs, mark.highs, strict=True)
            lower = zip(mark.xs[::-1], mark.lows[::-1], strict=True)
            path = _Path()
            for at, value in chain(upper, lower):
                path.go("l" if path.way else "m", x(at), y(value))
            yield f'<path class="band" {SCALE} d="{path.way}z"/>'
        case Bars():
            half = abs(y(1) - y(0)) * mark.thickness / 2
            for at, low, high, label in zip(
                mark.ys, mark.lows, mark.highs, mark.labels, strict=True
            ):
                yield (
                    f'<rect class="bar {mark.look}" x="{x(low):.1f}" y="{y(at) - half:.1f}" '
                    f'width="{x(high) - x(low):.1f}" height="{2 * half:.1f}"/>'
                )
                yield from plot.label(label, x(high) + 5, y(at) + 4)
        case Limit():
            yield f'<path class="limit" d="M{plot.left:g} {y(mark.y):.1f}H{plot.layout.right}"/>'
        case Heat():
            yield from _cells(mark, plot, f"{plot.key}-{number}")
        case Whiskers():
            yield from _whiskers(mark, plot)


def sample(mark: Mark, left: float, middle: float, key: str) -> Iterator[str]:
    """Draw a mark in the legend, 20 pixels wide.

    Args:
        mark: The mark.
        left: Where it begins.
        middle: Its height.
        key: The id of its gradient.
    """
    box = f'x="{left:.1f}" y="{middle - 5:.1f}" width="20" height="10"'
    match mark:
        case Curve():
            yield f'<path class="line c{mark.colour}" d="M{left:.1f} {middle:.1f}h20"/>'
        case Dots():
            yield _dot(mark.look, left + 12, middle)
        case Bars():
            yield f'<rect class="bar {mark.look}" {box}/>'
        case Scatter(failed=True):
            yield _dot("missed", left + 12, middle)
        case Scatter():
            yield _points((left + x, middle + y) for x, y in ((4, 2), (10, -3), (16, 1)))
        case Band():
            yield f'<rect class="band" {box}/>'
        case Limit():
            yield f'<path class="limit" d="M{left:.1f} {middle:.1f}h20"/>'
        case Whiskers():
            ends = (left + 3, left + 19) if mark.across else (middle - 6, middle + 6)
            places = [(end, middle) if mark.across else (left + 12, end) for end in ends]
            yield _whisker(mark, places, places)
        case Heat():
            yield (
                f'<linearGradient id="{key}"><stop class="shade" '
                f'stop-opacity="{FAINTEST / 255:.2f}"/><stop class="shade" offset="1"/>'
                f'</linearGradient><rect {box} fill="url(#{key})"/>'
            )


def _line(curve: Curve, plot: Plot) -> str:
    """A line that is broken where there is no value; a value alone is a dot."""
    path = _Path()
    height = None
    for at, value in zip(curve.xs, curve.ys, strict=True):
        x = plot.x(at)
        y = None if value is None else plot.y(value)
        if height is not None and curve.steps:
            path.go("h", x, height)
        if y is not None:
            path.go("m" if height is None else "v" if curve.steps else "l", x, y)
            path.way += "h0" if height is None else ""
        height = y
    return path.way


def _dot(look: Look, x: float, y: float) -> str:
    if look == "missed":
        return f'<path class="dot missed" d="M{x - ARM:.1f} {y - ARM:.1f}l7 7m0-7l-7 7"/>'
    return (
        f'<circle class="dot {look}" cx="{x:.1f}" cy="{y:.1f}" r="{8 if look == "ring" else 3.5}"/>'
    )


def _points(places: Iterable[tuple[float, float]], *, failed: bool = False) -> str:
    """One path for all points: a tenth of an element for each. Of those in one place one is
    drawn.
    """
    path = _Path()
    for x, y in dict.fromkeys((round(2 * x) / 2, round(2 * y) / 2) for x, y in places):
        if failed:
            path.go("m", x - ARM, y - ARM)
            path.go("l", x + ARM, y + ARM)
            path.go("m", x + ARM, y - ARM)
            path.go("l", x - ARM, y + ARM)
        else:
            path.go("m", x, y)
            path.way += "h0"
    return f'<path class="{"crosses" if failed else "points"}" {SCALE} d="{path.way}"/>'


def _whiskers(mark: Whiskers, plot: Plot) -> Iterator[str]:
    def place(at: float, end: float) -> tuple[float, float]:
        return (plot.x(end), plot.y(at)) if mark.across else (plot.x(at), plot.y(end))

    for number, (at, *bounds) in enumerate(zip(mark.at, mark.lows, mark.highs, strict=True)):
        ends = [place(at, end) for end in bounds]
        yield _whisker(mark, ends, [place(at, end) for end in bounds if math.isfinite(end)])
        if mark.values:
            x, y = place(at, mark.values[number])
            yield f'<circle class="center {mark.look}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
        if mark.labels:
            x, y = ends[0 if mark.below else 1]
            label = mark.labels[number]
            if mark.across:
                yield from plot.label(label, x + LABEL_GAP, y + 4)
            else:
                # beyond a ring around a value near the end
                y += LABEL_GAP + plot.layout.font if mark.below else -LABEL_GAP - 2
                yield from plot.label(label, x - plot.layout.width_of(label, BOLD_LETTER) / 2, y)


def _whisker(
    mark: Whiskers, ends: Sequence[tuple[float, float]], caps: Iterable[tuple[float, float]]
) -> str:
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in ends)
    for x, y in caps:
        way += f"M{x:.1f} {y - CAP:.1f}v7" if mark.across else f"M{x - CAP:.1f} {y:.1f}h7"
    return f'<path class="whisker {mark.look}" d="M{way}"/>'


def _cells(heat: Heat, plot: Plot, key: str) -> Iterator[str]:
    """A grey picture in a mask, through which the page's own colour is seen. The drawing for narrow
    screens uses the picture of the other one, since its panels are as high.
    """
    if not heat.most:
        return
    left, right = plot.x(heat.low), plot.x(heat.high)
    above, below = plot.y(heat.edges[-1]), plot.y(heat.edges[0])
    width, height = right - left, below - above
    picture = f'<use href="#{key}"/>'
    if plot.layout is WIDE:
        data = base64.b64encode(png(_pixels(heat, plot))).decode()
        picture = (
            f'<image id="{key}" width="1" height="1" preserveAspectRatio="none" '
            f'href="data:image/png;base64,{data}"/>'
        )
    mask = f"{plot.layout.name}-{key}"
    yield (
        f'<mask id="{mask}"><g class="cells" transform="translate({left:.1f} {above:.1f}) '
        f'scale({width:.1f} {height:.1f})">{picture}</g></mask><rect class="heat" '
        f'x="{left:.1f}" y="{above:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'mask="url(#{mask})"/>'
    )


def _pixels(heat: Heat, plot: Plot) -> list[bytes]:
    """A shade for each column and for rows of pixels of one height, though those of the grid may
    differ in theirs.
    """
    span = math.log1p(heat.most)
    shades = []
    for column in heat.counts:
        logs = map(math.log1p, column)
        shades.append(
            [round(FAINTEST + (255 - FAINTEST) * log / span) if log else 0 for log in logs]
        )
    heights = [plot.y(edge) for edge in heat.edges]  # falling
    rows = len(heat.edges) - 1
    count = min(2 * rows, MAX_ROWS)
    pixels = list[bytes]()
    row = rows - 1
    for number in range(count):
        middle = heights[-1] + (heights[0] - heights[-1]) * (number + 0.5) / count
        while row > 0 and heights[row] < middle:
            row -= 1
        pixels.append(bytes(column[row] for column in shades))
    return pixels


def png(rows: Sequence[bytes]) -> bytes:
    """A grey picture.

    Args:
        rows: From above, all of one length; a byte is a pixel, 0 black and 255 white.
    """
    # 8 bits, grey, deflated, not interlaced
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 9)  # each row unfiltered
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
