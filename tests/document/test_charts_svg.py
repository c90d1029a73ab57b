"""Charts as SVG: positions, readouts and escaped text."""

import base64
import json
import struct
import zlib
from typing import Any
from xml.etree import ElementTree

import pytest

from loadgen.document import page_writer
from loadgen.document.charts.chart import (
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
    Whiskers,
)
from loadgen.document.charts.plot import NARROW, WIDE, Layout
from loadgen.document.charts.scale import Linear, Log, Names, Nines
from loadgen.document.charts.svg import readout, svg
from tests.helpers.drawn_charts import LEFT, RIGHT, TOP, drawn, of_class, overlaps, places

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


def found(what: Chart, name: str) -> list[ElementTree.Element]:
    return of_class(drawn(what), name)


def texts(what: Chart) -> list[str]:
    return [each.text or "" for each in drawn(what).iter("text")]


def own(x: float, y: float) -> tuple[float, float]:
    """Convert pixels of the plot to the numbers of its axes."""
    return round(10 * (x - LEFT) / (RIGHT - LEFT), 1), round(10 - (y - TOP) / 10, 1)


def path(*points: tuple[float, float | None], steps: bool = False) -> str:
    """The way of a curve's line, in its own numbers instead of pixels; blanks between its steps."""
    curve = Curve("", [x for x, _ in points], [y for _, y in points], steps=steps)
    (line,) = found(chart(curve), "line")
    words = []
    for command, x, y in places(line):
        across, up = own(x, y)
        words.append(
            {"h": f"h{across:g}", "v": f"v{up:g}"}.get(command, f"{command}{across:g},{up:g}")
        )
    return " ".join(words)


def test_a_line_goes_through_its_points() -> None:
    assert path((0, 1), (5, 10), (10, 0)) == "m0,1 l5,10 l10,0"


def test_where_there_is_no_value_a_line_is_broken() -> None:
    assert path((0, 1), (1, None), (2, 3), (3, 4)) == "m0,1 m2,3 l3,4"


def test_a_step_holds_its_value_up_to_the_next() -> None:
    assert path((0, 1), (5, 3), (10, None), steps=True) == "m0,1 h5 v3 h10"


def test_a_chart_is_named_and_described_for_who_cannot_see_it() -> None:
    root = drawn(chart())
    assert (root.get("role"), root.get("aria-label")) == ("img", "Title: About")


def test_a_legend_names_what_the_title_does_not() -> None:
    one = Curve("alone", [0], [1])
    assert "alone" not in texts(chart(one))
    assert {"alone", "other"} <= set(texts(chart(one, Curve("other", [0], [1]))))
    assert "SLO" in texts(chart(one, Limit("SLO", 5)))


def test_a_legend_that_is_too_long_for_the_row_of_the_title_stands_below_it() -> None:
    many = [Curve(f"a curve of a long name {number}", [0], [1], 1 + number) for number in range(8)]
    heights = {
        float(each.get("y") or 0): each.text
        for each in drawn(chart(*many)).iter("text")
        if each.text == "Panel" or "name" in (each.text or "")
    }
    assert len(heights) > 2
    assert heights[min(heights)] == "Panel"
    short = [Curve(name, [0], [1]) for name in "ab"]
    assert len({y for y in heights if y == min(heights)}) == 1
    rows = [each.get("y") for each in drawn(chart(*short)).iter("text") if each.text in "ab"]
    assert len({*rows, *(each.get("y") for each in found(chart(*short), "title"))}) == 1


def test_a_legend_does_not_repeat_the_title() -> None:
    marks = Scatter("Panel", [1], [1], 0.5), Limit("SLO", 5)
    assert texts(chart(*marks)).count("Panel") == 1


BUSY = Chart(
    "Title",
    "About",
    "seconds since the start of the run, by the clock of this machine",
    Nines(5.0),
    (
        Panel(
            "TTFT of 1000 of 100000 requests, ms, logarithmic (limit off the scale)",
            Log("ms", 0.001, 5e4),
            (
                Limit("SLO: ttft_p99<500ms", 0.5),
                *(Curve(f"running ({name})", [0], [1]) for name in ("server", "client", "users")),
                Dots("front", [4.9, 5.0, 5.0], [1, 1, 1], "met", ["10000", "20000", "30000"]),
            ),
            60,
        ),
        Panel(
            "",
            Names(tuple(f"max_num_batched_tokens={number}" for number in (4096, 8192))),
            (
                Whiskers("no difference", [0.0], [1], [5.0], across=True, labels=["-80.1%"]),
                Bars("", [1.0], [0], [5.0], "gain", ["123,456.7 (+12.3%)"]),
            ),
            46,
        ),
    ),
)


@pytest.mark.parametrize("layout", [WIDE, NARROW])
def test_words_of_a_chart_do_not_stand_in_each_other_or_beyond_its_edges(layout: Layout) -> None:
    assert overlaps(drawn(BUSY, layout), layout.font) == []


def test_narrow_screens_have_a_drawing_of_their_own_with_letters_that_can_be_read() -> None:
    # In a fold on a phone 360 px wide, and in one beside the narrowest screen for wide drawings.
    for layout, seen in ((NARROW, 306), (WIDE, 55 * 16 - 68)):
        root = drawn(BUSY, layout)
        assert root.get("font-size") == str(layout.font)
        assert layout.font * seen / float((root.get("viewBox") or "").split()[2]) >= 12
    assert {len([*drawn(BUSY, layout).iter()]) > 30 for layout in (WIDE, NARROW)} == {True}
    css = page_writer.TEMPLATES.joinpath("charts.css").read_text()
    assert (
        "@media screen and (max-width: 55rem) { .chart { display: none; } "
        ".chart.narrow { display: block; } }" in css
    )


def test_lines_keep_their_dashes_at_every_size() -> None:
    rules = page_writer.TEMPLATES.joinpath("charts.css").read_text().splitlines()
    (scaled,) = (rule for rule in rules if "non-scaling-stroke" in rule)
    assert scaled.startswith(".chart .line, .chart .points, .chart .crosses {")


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
    return [own(x, y) for command, x, y in places(path) if command == "m"]


def test_each_request_of_a_scatter_has_a_point_in_one_path() -> None:
    points = Scatter("requests", [0, 2.5, 2.5, 10], [1, 10, 10, 3.2], 0.5)
    assert centres(chart(points), "points") == [(0, 1), (2.5, 10), (10, 3.2)]


def test_failed_points_are_crosses_and_those_beyond_stand_at_the_end() -> None:
    crosses = Scatter("failed", [5, 6], [5, 99], 0.5, failed=True)
    (path,) = found(chart(crosses), "crosses")
    ends = places(path)
    assert [command for command, *_ in ends] == ["m", "l"] * 4
    middles = [
        own((one[1] + other[1]) / 2, (one[2] + other[2]) / 2)
        for one, other in zip(ends[::2], ends[1::2], strict=True)
    ]
    assert middles == [(5, 5), (5, 5), (6, 10), (6, 10)]


def test_readout_of_a_scatter_has_the_range_near_a_stop() -> None:
    points = Scatter("TTFT", [1, 1.2, 3], [20, 30, 5], 0.5)
    told = json.loads(readout(chart(points, stops=(1, 2, 3))))
    assert told["rows"] == [["TTFT", "20 ms to 30 ms (2)||5 ms (1)"]]


def test_band_runs_along_its_upper_line_and_back_along_the_lower() -> None:
    (_, area) = found(chart(Band("error", [0, 10], [2, 4], [6, 8]), Curve("", [0], [1])), "band")
    *corners, end = places(area)
    assert [own(x, y)[1] for _, x, y in corners] == [6, 8, 4, 2]
    assert end[0] == "z"


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


def test_both_drawings_share_the_picture_of_a_heat_map() -> None:
    what = chart(Heat("gaps", 0.0, 10.0, [1.0, 2.0], [[1], [2]]), scale=Log("ms", 1.0, 2.0))
    (image,), (use,) = drawn(what).iter("image"), drawn(what, NARROW).iter("use")
    assert use.get("href") == f"#{image.get('id')}"
    assert not list(drawn(what, NARROW).iter("image"))


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
    assert told["along"] == "1 s|2 s"
    assert told["rows"] == [["line", "3 ms|"], ["failed", "|7, 8"], ["gaps", "5|6"]]
    assert told["at"] == [0.1, 0.2]


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
    text = page_writer.chart_svg(chart(Curve("", [0, 1], [1, 2])))
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "--c1:" in text
    assert page_writer.chart_svg(chart()) == page_writer.chart_svg(chart())


def test_bars_run_from_low_to_high_with_labels_at_their_ends() -> None:
    bars = Bars("gains", [0, 1], [0.0, 5.0], [10.0, 7.5], "gain", ["ten", NASTY])
    what = Chart(
        "Title", "About", "s", X, (Panel("Panel", Names(("first", "second")), (bars,), 100),)
    )
    first, second = found(what, "bar")[-2:]
    left = float(first.get("x") or 0)
    assert float(first.get("width") or 0) == pytest.approx(RIGHT - left, abs=0.1)
    assert float(second.get("x") or 0) == pytest.approx((left + RIGHT) / 2, abs=0.1)
    assert float(second.get("width") or 0) == pytest.approx((RIGHT - left) / 4, abs=0.1)
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
    assert WIDE.cut(f"{'a' * 20}{'b' * 20}") == f"{'a' * 15}\N{HORIZONTAL ELLIPSIS}{'b' * 14}"
