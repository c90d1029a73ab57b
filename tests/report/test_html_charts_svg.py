"""Charts as SVG: positions, readouts and escaped text."""

import base64
import json
import re
import struct
import zlib
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

from loadgen.report.html import writer
from loadgen.report.html.charts.chart import (
    Band,
    Bars,
    Chart,
    Curve,
    Dots,
    Heat,
    Limit,
    Mark,
    Panel,
    Scatter,
)
from loadgen.report.html.charts.scale import Linear, Log, Names
from loadgen.report.html.charts.svg import ABOVE, APART, LEFT, RIGHT, ROW, WIDTH, readout, svg

NASTY = '</title><script>alert("1")</script> & \x1b[31m'
X = Linear("s", 0.0, 10.0)


def chart(*marks: Mark, stops: tuple[float, ...] = (), scale: Any = None) -> Chart:
    return Chart(
        "Title",
        "About",
        "seconds",
        X,
        (Panel("Panel", scale or Linear("ms", 0.0, 10.0), marks, 100),),
        stops,
    )


def drawn(what: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(svg(what, "k"))


def found(what: Chart, name: str) -> list[ElementTree.Element]:
    return [each for each in drawn(what).iter() if name in (each.get("class") or "").split()]


def texts(what: Chart) -> list[str]:
    return [each.text or "" for each in drawn(what).iter("text")]


def path(*points: tuple[float, float | None], steps: bool = False) -> str:
    """The way of a curve's line, in its own numbers instead of pixels; blanks between its steps."""
    curve = Curve("", [x for x, _ in points], [y for _, y in points], steps=steps)
    (line,) = found(chart(curve), "line")
    left = LEFT, (WIDTH - RIGHT - LEFT) / 10

    def back(match: re.Match[str]) -> str:
        command, first, second = match.groups()
        if command == "h":
            return ""
        across = f"{(float(first) - left[0]) / left[1]:g}"
        if command == "V":
            return f" V{height(float(first)):g}"
        return f" {command}{across}" + (f",{height(float(second)):g}" if second else "")

    def height(y: float) -> float:
        top = ROW + ABOVE
        return round(10 - (y - top) / 10, 6)

    return re.sub(r"([MLHVh])([\d.]+)(?: ([\d.]+))?", back, line.get("d") or "").strip()


def test_a_line_goes_through_its_points() -> None:
    assert path((0, 1), (5, 10), (10, 0)) == "M0,1 L5,10 L10,0"


def test_where_there_is_no_value_a_line_is_broken() -> None:
    assert path((0, 1), (1, None), (2, 3), (3, 4)) == "M0,1 M2,3 L3,4"


def test_a_step_holds_its_value_up_to_the_next() -> None:
    assert path((0, 1), (5, 3), (10, None), steps=True) == "M0,1 H5 V3 H10"


def test_a_chart_is_named_and_described_for_who_cannot_see_it() -> None:
    root = drawn(chart())
    names = {each.get("id"): each.text for each in root}
    assert root.get("role") == "img"
    assert names[root.get("aria-labelledby")] == "Title"
    assert names[root.get("aria-describedby")] == "About"


def test_ticks_that_would_stand_in_each_other_have_no_words() -> None:
    low = Chart("", "", "", X, (Panel("", Linear("ms", 0.0, 10.0), (), height=40),))
    heights = [
        float(each.get("y") or 0)
        for each in drawn(low).iter("text")
        if each.get("text-anchor") == "end"
    ]
    assert len(heights) == 3
    assert all(one - other >= APART for one, other in pairwise(heights))
    # Of both axes.
    assert len([each for each in texts(chart()) if each in ("0", "2", "4", "6", "8", "10")]) == 12


def test_a_legend_names_what_the_title_does_not() -> None:
    one = Curve("alone", [0], [1])
    assert "alone" not in texts(chart(one))
    assert {"alone", "other"} <= set(texts(chart(one, Curve("other", [0], [1]))))
    assert "SLO" in texts(chart(one, Limit("SLO", 5)))


def test_a_legend_that_is_too_long_for_a_row_has_another() -> None:
    many = [Curve(f"a curve of a long name {number}", [0], [1], 1 + number) for number in range(8)]
    places = [
        (float(each.get("x") or 0), len(each.text or ""))
        for each in drawn(chart(*many)).iter("text")
    ]
    assert all(x + length * 5 <= WIDTH for x, length in places)
    assert (
        len(
            {
                each.get("y")
                for each in drawn(chart(*many)).iter("text")
                if "name" in (each.text or "")
            }
        )
        > 1
    )


def test_points_are_told_apart_by_shape() -> None:
    shapes = {
        look: found(chart(Dots("", [1], [1], look)), look)[0]
        for look in ("met", "missed", "open", "ring")
    }  # type: ignore[arg-type]
    assert shapes["missed"].tag == "path"
    assert {shapes[look].get("r") for look in ("met", "open")} == {"3.5"}
    assert shapes["ring"].get("r") == "8"


def centres(what: Chart, name: str) -> list[tuple[float, float]]:
    """Where the points of the scatter stand, in its own numbers; those of the legend are left
    out.
    """
    *_, path = found(what, name)
    assert path.get("transform") == "scale(.1)"
    steps = [
        (command, *map(float, numbers))
        for command, *numbers in re.findall(
            r"([mlh])\s?(-?\d+)\s?(-?\d+)?", (path.get("d") or "").replace("h0", "")
        )
    ]
    x = y = 0.0
    places = []
    for command, across, down in steps:
        x, y = x + across, y + down
        places.append((command, x, y))
    top, width = 10.0 * (ROW + ABOVE), 10.0 * (WIDTH - RIGHT - LEFT)
    return [
        (round(10 * (x - 10 * LEFT) / width, 2), round(10 - (y - top) / 100, 2))
        for command, x, y in places
        if command == "m"
    ]


def test_each_request_of_a_scatter_has_a_point_in_one_path() -> None:
    points = Scatter("requests", [0, 2.5, 10], [1, 10, 3.25], 0.5)
    assert centres(chart(points), "points") == [(0, 1), (2.5, 10), (10, 3.25)]


def test_failed_points_are_crosses_and_those_beyond_stand_at_the_end() -> None:
    crosses = Scatter("failed", [5, 6], [5, 99], 0.5, failed=True)
    (path,) = found(chart(crosses), "crosses")
    assert (path.get("d") or "").count("l70 70") == 2
    assert centres(chart(crosses), "crosses")[::3] == [(5, 5), (6, 10)]  # each begins at its centre


def test_readout_of_a_scatter_has_the_range_near_a_stop() -> None:
    points = Scatter("TTFT", [1, 1.2, 3], [20, 30, 5], 0.5)
    told = json.loads(readout(chart(points, stops=(1, 2, 3))))
    assert told["rows"] == [["TTFT", ["20 ms to 30 ms (2)", "", "5 ms (1)"]]]


def test_band_runs_along_its_upper_line_and_back_along_the_lower() -> None:
    (_, area) = found(chart(Band("error", [0, 10], [2, 4], [6, 8]), Curve("", [0], [1])), "band")
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", area.get("d") or "")]
    assert [round(10 - (y - ROW - ABOVE) / 10, 1) for y in heights] == [6, 8, 4, 2]
    assert (area.get("d") or "").endswith("Z")


def test_words_of_long_names_are_small_where_the_page_is_narrow() -> None:
    def named(name: str) -> Chart:
        return Chart("", "", "", X, (Panel("", Names((name,)), (), 50),))

    assert drawn(named("a name that is long")).get("class") == "chart named"
    assert drawn(named("short")).get("class") == "chart"
    assert drawn(chart()).get("class") == "chart"


def pixels(what: Chart) -> list[list[int]]:
    """The shades of the heat map's picture, row by row from above."""
    (image,) = drawn(what).iter("image")
    data = base64.b64decode((image.get("href") or "").partition(",")[2])
    width, height = struct.unpack(">II", data[16:24])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    length = struct.unpack(">I", data[33:37])[0]
    raw = zlib.decompress(data[41 : 41 + length])
    assert (
        zlib.crc32(data[37 : 41 + length])
        == struct.unpack(">I", data[41 + length : 45 + length])[0]
    )
    return [list(raw[row * (width + 1) + 1 : (row + 1) * (width + 1)]) for row in range(height)]


def test_heat_cell_darkens_with_its_count_and_zero_is_blank() -> None:
    heat = Heat("gaps", 0.0, 10.0, [1.0, 2.0, 4.0], [[100, 0], [0, 3]])
    rows = pixels(chart(heat, scale=Log("ms", 1.0, 4.0)))
    assert len(rows) == 4
    upper, lower = rows[0], rows[-1]
    assert lower == [255, 0]
    assert upper[0] == 0
    assert 48 < upper[1] < 255
    assert rows[1] == upper
    assert rows[2] == lower


def test_rows_that_are_not_as_high_as_each_other_stand_where_they_belong() -> None:
    heat = Heat("gaps", 0.0, 10.0, [1.0, 8.0, 16.0], [[1, 2]])  # three doublings, and one
    rows = pixels(chart(heat, scale=Log("ms", 1.0, 16.0)))
    assert [row[0] == 255 for row in rows] == [True, False, False, False]


def test_a_reader_is_told_all_that_stands_at_a_stop() -> None:
    told = json.loads(
        readout(
            chart(
                Curve("line", [1, 2], [3.0, None]),
                Dots("failed", [2, 2], [10, 11], "missed", texts=["7", "8"]),
                Limit("SLO", 5),
                Heat("gaps", 0.0, 4.0, [1, 2], [[5], [6]]),
                stops=(1, 2),
            )
        )
    )
    assert told["along"] == ["1 s", "2 s"]
    assert told["rows"] == [["line", ["3 ms", ""]], ["failed", ["", "7, 8"]], ["gaps", ["5", "6"]]]
    assert told["at"][0] < told["at"][1]


def test_text_cannot_become_svg_or_end_the_script() -> None:
    what = Chart(
        NASTY,
        NASTY,
        NASTY,
        X,
        (Panel(NASTY, X, (Curve(NASTY, [0], [1]), Curve("b", [0], [1]))),),
        (0,),
    )
    assert not list(drawn(what).iter("script"))
    assert "</" not in readout(what)
    assert "\x1b" not in readout(what) + svg(what, "k")


def test_a_chart_is_a_file_of_its_own_too() -> None:
    text = writer.chart_svg(chart(Curve("", [0, 1], [1, 2])))
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "--c1:" in text
    assert writer.chart_svg(chart()) == writer.chart_svg(chart())


def test_bars_run_from_low_to_high_with_labels_at_their_ends() -> None:
    bars = Bars("gains", [0, 1], [0.0, 5.0], [10.0, 7.5], "gain", ["ten", NASTY])
    what = Chart(
        "Title", "About", "s", X, (Panel("Panel", Names(("first", "second")), (bars,), 100),)
    )
    first, second = found(what, "bar")[-2:]
    left = float(first.get("x") or 0)
    assert float(first.get("width") or 0) == WIDTH - RIGHT - left
    assert float(second.get("x") or 0) == (left + WIDTH - RIGHT) / 2
    assert float(second.get("width") or 0) == (WIDTH - RIGHT - left) / 4
    assert {float(bar.get("height") or 0) for bar in (first, second)} == {30.0}  # 0.6 of 50 pixels
    assert "ten" in texts(what)
    assert "script" not in {each.tag for each in drawn(what).iter()}


def test_names_on_an_axis_have_room_and_are_cut() -> None:
    def left(name: str) -> float:
        panel = Panel("Panel", Names((name,)), (Dots("", [0.0], [0.0], "met"),), 50)
        (dot,) = found(Chart("Title", "About", "s", X, (panel,)), "dot")
        return float(dot.get("cx") or 0)

    assert left("a") == LEFT
    assert LEFT < left("a" * 20) < left("a" * 30) == left("a" * 99)
