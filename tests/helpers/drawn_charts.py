"""Charts as drawn: the elements of their SVG, and the places of a path."""

import re
from xml.etree import ElementTree

from loadgen.document.charts.chart import Chart
from loadgen.document.charts.plot import BOLD_LETTER, LETTER, WIDE, Layout
from loadgen.document.charts.svg import ABOVE, svg

LEFT, RIGHT, TOP = 3.6 * WIDE.font, WIDE.right, round(WIDE.row + ABOVE, 1)  # of a first plot


def drawn(chart: Chart, layout: Layout = WIDE) -> ElementTree.Element:
    """Return the element of a chart in a layout."""
    both = ElementTree.fromstring(f"<both>{svg(chart, 'k')}</both>")
    (element,) = (each for each in both if (each.get("class") or "").endswith(layout.name))
    return element


def of_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    """Return the elements of a class."""
    return [each for each in root.iter() if name in (each.get("class") or "").split()]


def places(path: ElementTree.Element) -> list[tuple[str, float, float]]:
    """Return each command of a path of tenths, without `h0`, with the pixels where it ends."""
    assert path.get("transform") == "scale(.1)"
    x = y = 0.0
    ends = []
    way = (path.get("d") or "").replace("h0", "")
    for command, first, second in re.findall(r"([mlhvz])\s?(-?\d+)?\s?(-?\d+)?", way):
        x += 0 if command in "vz" else float(first) / 10
        y += float({"h": 0, "v": first, "z": 0}.get(command, second)) / 10
        ends.append((command, round(x, 1), round(y, 1)))
    return ends


def boxes(root: ElementTree.Element, font: int) -> list[tuple[float, float, float, str]]:
    """Estimate the left end, right end and baseline of each text, as wide as it is at most."""
    found = []
    for each in root.iter("text"):
        words = each.text or ""
        is_bold = {"title", "callout"} & {*(each.get("class") or "").split()}
        width = len(words) * font * (BOLD_LETTER if is_bold else LETTER)
        x, y = float(each.get("x") or 0), float(each.get("y") or 0)
        left = x - {"end": width, "middle": width / 2}.get(each.get("text-anchor") or "", 0)
        found.append((left, left + width, y, words))
    return found


def overlaps(root: ElementTree.Element, font: int) -> list[tuple[str, str]]:
    """Return the texts that stand in each other, or beyond the edges of the drawing."""
    width = float((root.get("viewBox") or "").split()[2])
    found = boxes(root, font)
    beyond = [(words, "edge") for left, right, _, words in found if left < -1 or right > width + 1]
    rows = sorted(found, key=lambda box: (box[2], box[0]))
    touching = [
        (one[3], other[3])
        for number, one in enumerate(rows)
        for other in rows[number + 1 :]
        if abs(one[2] - other[2]) < font - 2 and one[0] < other[1] and other[0] < one[1]
    ]
    return beyond + touching
