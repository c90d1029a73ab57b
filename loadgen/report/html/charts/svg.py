"""SVG: a chart drawn, in colours that the page around it chooses, and what its readout says."""

import base64
import json
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape
from itertools import chain

from loadgen.report.html.charts.chart import (
    Band,
    Bars,
    Chart,
    Curve,
    Dots,
    Heat,
    Limit,
    Look,
    Mark,
    Panel,
    Scatter,
    Whiskers,
)
from loadgen.report.html.charts.scale import Names, ToPixels, short
from loadgen.util.terminal_text import printable

SIGNATURE = b"\x89PNG\r\n\x1a\n"
WIDTH = 720
LEFT = 52
RIGHT = 12
# There is room for words of 19 px, so that they can be read where the page is narrow and the chart
# is small.
# A line of words above a panel; ticks and label below all; between panels.
ROW = 21
BELOW = 46
GAP = 12
ABOVE = 6  # between the first line of words and the edge
LETTER = 10.2  # as wide as a letter is on average
BOLD_LETTER = 12.4
NAME_LETTER = 6.2  # the same on an axis of long names, whose words are of 11 px everywhere
APART = 15  # between the lines of two ticks' words
MAX_NAME = 30  # letters of a name on a vertical axis
MAX_SHORT_NAME = 15  # the same, for which there is room in words of 19 px
FAINTEST = 48  # of 255: of a cell of the heat map with one value
MAX_ROWS = 512  # of pixels, of a heat map


def svg(chart: Chart, key: str) -> str:
    """The chart as an element of a page; its style is in `templates/charts.css`.

    Args:
        chart: What is drawn.
        key: A word that no other chart of the page has: its ids begin so.
    """
    return "".join(_parts(chart, key, ""))


def svg_file(chart: Chart, style: str) -> str:
    """The chart as a file of its own.

    Args:
        chart: What is drawn.
        style: Rules of CSS.
    """
    paper = f'<style>{style}</style><rect class="paper" width="100%" height="100%"/>'
    drawn = "".join(_parts(chart, "chart", paper))
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def readout(chart: Chart) -> str:
    """Return the tooltip of each stop, as JSON that may stand inside HTML; empty if there is no
    stop.

    That is: `at`, where the stops stand, in the chart's pixels; `along`, their words; `rows`,
    [name, words at each stop]; `from` and `to`, between which heights they stand.
    """
    if not chart.stops:
        return ""
    tops = _tops(chart)
    tooltips = {
        "at": [round(_x(chart, stop), 1) for stop in chart.stops],
        "along": [chart.scale.written(stop) for stop in chart.stops],
        "rows": [
            [printable(name), [printable(text) for text in texts]]
            for name, texts in chart.tooltip_rows()
        ],
        "from": tops[0],
        "to": tops[-1] + chart.panels[-1].height,
    }
    return json.dumps(tooltips, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")


def _parts(chart: Chart, key: str, style: str) -> Iterator[str]:
    tops = _tops(chart)
    bottom = tops[-1] + chart.panels[-1].height
    named = " named" if _longest_name(chart) > MAX_SHORT_NAME else ""
    yield (
        f'<svg class="chart{named}" viewBox="0 0 {WIDTH} {bottom + BELOW}" role="img" '
        f'aria-labelledby="{key}-title" aria-describedby="{key}-about">'
    )
    yield f'<title id="{key}-title">{_text(chart.title)}</title>'
    yield f'<desc id="{key}-about">{_text(chart.about)}</desc>{style}'
    for number, (panel, top) in enumerate(zip(chart.panels, tops, strict=True)):
        yield from _panel(chart, panel, top, f"{key}-{number}")
    last = -float(WIDTH)
    for value, text in chart.scale.ticks():
        x = _x(chart, value)
        half = len(text) * LETTER / 2
        if x - half >= last + 6:
            yield (
                f'<text x="{min(x, WIDTH - half):.1f}" y="{bottom + 17}" '
                f'text-anchor="middle">{_text(text)}</text>'
            )
            last = x + half
    middle = (_left(chart) + WIDTH - RIGHT) / 2
    yield (
        f'<text x="{middle}" y="{bottom + 39}" text-anchor="middle" '
        f'class="label">{_text(chart.along)}</text></svg>'
    )


def _tops(chart: Chart) -> list[int]:
    tops = list[int]()
    below = 0
    for panel in chart.panels:
        top = below + ROW * _legend(panel)[1] + ABOVE
        tops.append(top)
        below = top + panel.height + GAP
    return tops


def _left(chart: Chart) -> float:
    """Return where the plots begin: further right if names stand on a vertical axis."""
    longest = _longest_name(chart)
    return max(LEFT, longest * (NAME_LETTER if longest > MAX_SHORT_NAME else LETTER) + 10)


def _longest_name(chart: Chart) -> int:
    axes = (panel.scale for panel in chart.panels)
    names = chain.from_iterable(axis.names for axis in axes if isinstance(axis, Names))
    return max((len(_cut(name)) for name in names), default=0)


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}\N{HORIZONTAL ELLIPSIS}"


def _x(chart: Chart, value: float) -> float:
    left = _left(chart)
    return left + (WIDTH - RIGHT - left) * chart.scale.share(value)


def _panel(chart: Chart, panel: Panel, top: int, key: str) -> Iterator[str]:
    x = partial(_x, chart)

    def y(value: float) -> float:
        return top + panel.height * (1 - panel.scale.share(value))

    named, rows = _legend(panel)
    first = top - ROW * rows + 10
    yield f'<text x="{LEFT}" y="{first}" class="title">{_text(panel.title)}</text>'
    for mark, left, row in named:
        yield from _sample(mark, left, first + ROW * row, f"{key}-key")
    begin = f"{_left(chart):g}"
    right = WIDTH - RIGHT
    bottom = top + panel.height
    named_axis = isinstance(panel.scale, Names)
    lines = "".join(f"M{x(value):.1f} {top}V{bottom}" for value, _ in chart.scale.ticks())
    above = float(bottom + APART)
    for value, text in panel.scale.ticks():
        lines += "" if named_axis else f"M{begin} {y(value):.1f}H{right}"
        if named_axis or y(value) <= above - APART:
            place = f'x="{float(begin) - 6:g}" y="{y(value) + 4:.1f}"'
            yield f'<text {place} text-anchor="end">{_text(_cut(text))}</text>'
            above = y(value)
    yield (
        f'<path class="grid" d="{lines}"/><path class="axis" d="M{begin} {top}V{bottom}H{right}"/>'
    )
    for number, mark in enumerate(panel.marks):
        yield from _drawn(mark, x, y, f"{key}-{number}")


def _drawn(mark: Mark, x: ToPixels, y: ToPixels, key: str) -> Iterator[str]:
    match mark:
        case Curve():
            yield f'<path class="line c{mark.colour}" d="{_path(mark, x, y)}"/>'
        case Dots():
            for number, (at, value) in enumerate(zip(mark.xs, mark.ys, strict=True)):
                yield _dot(mark.look, x(at), y(value))
                if mark.labels:
                    left = x(at) > WIDTH - max(60, len(mark.labels[number]) * LETTER)
                    side, anchor = (-7, "end") if left else (7, "start")
                    label = _text(mark.labels[number])
                    yield (
                        f'<text x="{x(at) + side:.1f}" y="{y(value) - 5:.1f}" '
                        f'text-anchor="{anchor}">{label}</text>'
                    )
        case Scatter():
            yield _points(mark, x, y)
        case Band():
            upper = zip(mark.xs, mark.highs, strict=True)
            lower = zip(mark.xs[::-1], mark.lows[::-1], strict=True)
            around = [f"{x(at):.1f} {y(value):.1f}" for at, value in chain(upper, lower)]
            yield f'<path class="band" d="M{"L".join(around)}Z"/>'
        case Bars():
            half = abs(y(1) - y(0)) * mark.thickness / 2
            for at, low, high, label in zip(
                mark.ys, mark.lows, mark.highs, mark.labels, strict=True
            ):
                place = (
                    f'x="{x(low):.1f}" y="{y(at) - half:.1f}" width="{x(high) - x(low):.1f}" '
                    f'height="{2 * half:.1f}"'
                )
                yield f'<rect class="bar {mark.look}" {place}/>'
                yield f'<text x="{x(high) + 5:.1f}" y="{y(at) + 4:.1f}">{_text(label)}</text>'
        case Limit():
            yield f'<path class="limit" d="M{LEFT} {y(mark.y):.1f}H{WIDTH - RIGHT}"/>'
        case Heat():
            yield from _cells(mark, x, y, key)
        case Whiskers():
            yield from mark.drawn(x, y)


def _path(curve: Curve, x: ToPixels, y: ToPixels) -> str:
    """A line that is broken where there is no value; a value alone is a dot."""
    drawn = ""
    before = False
    for at, value in zip(curve.xs, curve.ys, strict=True):
        if value is None:
            if before and curve.steps:
                drawn += f"H{x(at):.1f}"
        elif not before:
            drawn += f"M{x(at):.1f} {y(value):.1f}h0"
        elif curve.steps:
            drawn += f"H{x(at):.1f}V{y(value):.1f}"
        else:
            drawn += f"L{x(at):.1f} {y(value):.1f}"
        before = value is not None
    return drawn


def _dot(look: Look, x: float, y: float) -> str:
    if look == "missed":
        return f'<path class="dot missed" d="M{x - 3.5:.1f} {y - 3.5:.1f}l7 7m0-7l-7 7"/>'
    return (
        f'<circle class="dot {look}" cx="{x:.1f}" cy="{y:.1f}" r="{8 if look == "ring" else 3.5}"/>'
    )


def _points(scatter: Scatter, x: ToPixels, y: ToPixels) -> str:
    """One path for all points, each from the one before: a tenth of an element for each."""
    shape, then = ("m-35-35l70 70m0-70l-70 70", (-35, 35)) if scatter.failed else ("h0", (0, 0))
    drawn = ""
    here = (0, 0)
    for at, value in zip(scatter.xs, scatter.ys, strict=True):
        place = round(10 * x(at)), round(10 * y(value))
        across = place[0] - here[0]
        down = place[1] - here[1]
        drawn += f"m{across}{'' if down < 0 else ' '}{down}{shape}"
        here = place[0] + then[0], place[1] + then[1]
    return (
        f'<path class="{"crosses" if scatter.failed else "points"}" transform="scale(.1)" '
        f'd="{drawn}"/>'
    )


def _cells(heat: Heat, x: ToPixels, y: ToPixels, key: str) -> Iterator[str]:
    """A grey picture in a mask, through which the page's own colour is seen."""
    if not heat.most:
        return
    left = x(heat.low)
    right = x(heat.high)
    above = y(heat.edges[-1])
    below = y(heat.edges[0])
    place = (
        f'x="{left:.1f}" y="{above:.1f}" width="{right - left:.1f}" height="{below - above:.1f}"'
    )
    data = base64.b64encode(png(_pixels(heat, y))).decode()
    yield (
        f'<mask id="{key}"><image {place} preserveAspectRatio="none" class="cells" '
        f'href="data:image/png;base64,{data}"/></mask><rect class="heat" {place} '
        f'mask="url(#{key})"/>'
    )


def _pixels(heat: Heat, y: ToPixels) -> list[bytes]:
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
    heights = [y(edge) for edge in heat.edges]  # falling
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


def _legend(panel: Panel) -> tuple[list[tuple[Mark, float, int]], int]:
    """The marks that are named above a panel, each with where its sample begins, and in which
    row; how many rows.
    """
    marks = [mark for mark in panel.marks if mark.name]
    if len(marks) == 1 and isinstance(marks[0], Curve):
        return [], 1  # the title names it
    places = list[tuple[Mark, float, int]]()
    row = 0
    left = LEFT + len(panel.title) * BOLD_LETTER + 16
    for mark in marks:
        width = 24 + len(_named(mark)) * LETTER + 14
        if left + width > WIDTH:
            row += 1
            left = LEFT
        places.append((mark, left, row))
        left += width
    return places, row + 1


def _named(mark: Mark) -> str:
    return f"{mark.name}: 1 to {short(mark.most)} a cell" if isinstance(mark, Heat) else mark.name


def _sample(mark: Mark, left: float, y: float, key: str) -> Iterator[str]:
    middle = y - 4
    match mark:
        case Curve():
            yield f'<path class="line c{mark.colour}" d="M{left:.1f} {middle}h20"/>'
        case Dots():
            yield _dot(mark.look, left + 12, middle)
        case Bars():
            yield (
                f'<rect class="bar {mark.look}" x="{left:.1f}" y="{middle - 5}" width="20" '
                'height="10"/>'
            )
        case Scatter(failed=True):
            yield _dot("missed", left + 12, middle)
        case Scatter():
            yield _points(
                Scatter("", (4, 10, 16), (2, -3, 1), 0), lambda x: left + x, lambda y: middle + y
            )
        case Band():
            yield f'<rect class="band" x="{left:.1f}" y="{middle - 5}" width="20" height="10"/>'
        case Limit():
            yield f'<path class="limit" d="M{left:.1f} {middle}h20"/>'
        case Whiskers():
            yield mark.sample(left, middle)
        case Heat():
            faint = f'<stop class="shade" stop-opacity="{FAINTEST / 255:.2f}"/>'
            full = '<stop class="shade" offset="1"/>'
            yield f'<linearGradient id="{key}">{faint}{full}</linearGradient>'
            yield (
                f'<rect x="{left:.1f}" y="{middle - 5}" width="20" height="10" fill="url(#{key})"/>'
            )
    yield f'<text x="{left + 24:.1f}" y="{y}">{_text(_named(mark))}</text>'


def _text(text: str) -> str:
    return escape(printable(text))


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
