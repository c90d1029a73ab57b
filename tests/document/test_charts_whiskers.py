"""Whiskers in a chart: their ends, caps, centers and labels, and the words of their readout."""

import math
from xml.etree import ElementTree

import pytest

from loadgen.document.charts.chart import Chart, Panel, Whiskers
from loadgen.document.charts.scale import Linear, Names, Scale
from tests.helpers import drawn_charts
from tests.helpers.drawn_charts import LEFT, RIGHT, TOP, of_class

X, Y = Linear("req/s", 0.0, 10.0), Linear("ms", 0.0, 10.0)
HEIGHT = 100


def drawn(mark: Whiskers, scale: Scale = Y) -> ElementTree.Element:
    return drawn_charts.drawn(Chart("T", "A", "rate", X, (Panel("P", scale, (mark,), HEIGHT),)))


def steps(mark: Whiskers, scale: Scale = Y) -> str:
    """The path of the only whisker without a name."""
    (path,) = of_class(drawn(mark, scale), "whisker")
    return path.get("d") or ""


def test_whisker_goes_from_end_to_end_with_a_cap_at_each() -> None:
    middle = (LEFT + RIGHT) / 2
    low, high = TOP + 80, TOP + 20
    assert steps(Whiskers("", [5], [2], [8])) == (
        f"M{middle:.1f} {low}L{middle:.1f} {high}M{middle - 3.5:.1f} {low}h7M{middle - 3.5:.1f} "
        f"{high}h7"
    )


def test_unknown_end_has_no_cap_and_is_at_the_edge() -> None:
    path = steps(Whiskers("", [5], [2], [math.inf]))
    assert path.count("h7") == 1
    assert f"L{(LEFT + RIGHT) / 2:.1f} {TOP:.1f}" in path


def test_whiskers_across_have_centers_and_labels_behind_them() -> None:
    root = drawn(
        Whiskers("", [0.0], [2], [8], "gain", across=True, values=[4], labels=["-60% <b>"]),
        Names(("one",)),
    )
    (center,) = of_class(root, "center")
    (label,) = of_class(root, "callout")
    (whisker,) = of_class(root, "whisker")
    assert whisker.get("class") == "whisker gain"
    assert float(center.get("cx") or 0) == pytest.approx(LEFT + 0.4 * (RIGHT - LEFT), abs=0.1)
    assert float(label.get("x") or 0) > LEFT + 0.8 * (RIGHT - LEFT)
    assert label.text == "-60% <b>"


@pytest.mark.parametrize("below", [False, True])
def test_label_stands_above_or_below_its_whisker(below: bool) -> None:
    (label,) = of_class(drawn(Whiskers("", [5], [2], [8], labels=["28.1"], below=below)), "callout")
    height = float(label.get("y") or 0)
    assert height > 105 if below else height < 45


def test_legend_shows_a_whisker() -> None:
    root = drawn(Whiskers("bounds", [5], [2], [8]))
    assert "bounds" in [text.text for text in root.iter("text")]
    assert len(of_class(root, "whisker")) == 2


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(2.0, 8.0, "2 ms to 8 ms"), (2.0, math.inf, "> 2 ms"), (-math.inf, 8.0, "< 8 ms")],
)
def test_reader_is_told_the_bounds(low: float, high: float, said: str) -> None:
    whiskers = Whiskers("bounds", [5.0], [low], [high])
    assert (whiskers.text(5.0, Y), whiskers.text(6.0, Y)) == (said, "")
    assert Whiskers("", [5.0], [low], [high], across=True).text(5.0, Y) == ""
