"""The load curve of several runs: what the SLO limits over the levels."""

import math
from typing import Any

import pytest

from loadgen.document.charts.chart import Chart, Curve, Dots, Limit, Whiskers
from loadgen.document.charts.scale import Linear, Log
from tests.helpers import saved_json
from tests.helpers.run_facts import measured, result, steady
from tests.helpers.saved_json import curve


def series(
    *points: tuple[float | str, float | None, bool | None], **changes: Any
) -> dict[str, Any]:
    """Points of a level, a latency and whether the SLO is met."""
    snapshot = measured([steady()])
    one = saved_json.point(1.0, result(snapshot), snapshot, limits=None, saved=[])
    rows = [
        one
        | {
            "level": level,
            "met": met,
            "latency_ms": dict.fromkeys(one["latency_ms"], latency),
            "result": one["result"]
            | {"output_throughput": None if latency is None else 100.0 * number},
        }
        for number, (level, latency, met) in enumerate(points, 1)
    ]
    limits = "ttft_p99<500ms,tpot_median<40ms"
    return saved_json.begun("sweep", "rate", limits, "due") | {"points": rows} | changes


POINTS = ((1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False), ("inf", 9000.0, None))
SEARCHED = {
    "kind": "search",
    "found": {"level": 2.0, "fails": 4.0, "end": "edge", "last": 4.0},
    "slo": "ttft_p99<500ms",
}


def drawn(*points: tuple[float | str, float | None, bool | None], **changes: Any) -> Chart:
    found = curve(series(*points, **changes))
    assert found is not None
    return found


def bounded(
    level: float, value: float | None, low: float | None, high: float | None
) -> dict[str, Any]:
    """A level of a search."""
    met = None if high is None else high < 500
    limit = {"limit": "ttft_p99<500ms", "value": value, "low": low, "high": high, "met": met}
    return {"level": level, "met": met, "runs": 1, "why": None, "slo": [limit]}


def marks(chart: Chart, kind: type[Any]) -> list[Any]:
    """Those of the upper panel."""
    return [mark for mark in chart.panels[0].marks if isinstance(mark, kind)]


def dots(chart: Chart) -> dict[str, Dots]:
    """Those of the upper panel, by their look."""
    return {mark.look: mark for mark in marks(chart, Dots)}


def test_levels_are_the_horizontal_axis_and_all_at_once_has_no_place() -> None:
    chart = drawn(*reversed(POINTS))
    (line,) = marks(chart, Curve)
    assert (list(line.xs), line.ys) == ([1.0, 2.0, 4.0], [20.0, 30.0, 900.0])
    assert chart.along == "req/s"
    assert chart.stops == [1.0, 2.0, 4.0]


def test_levels_far_apart_stand_on_a_logarithmic_axis() -> None:
    assert isinstance(drawn(*POINTS).scale, Linear)
    assert isinstance(drawn((1.0, 20.0, True), (64.0, 30.0, True)).scale, Log)


def test_the_panels_are_of_what_the_slo_limits_and_show_the_limit() -> None:
    chart = drawn(*POINTS)
    assert [panel.title for panel in chart.panels] == [
        "TTFT p99, ms",
        "TPOT median, ms",
        "Output tokens/s",
    ]
    limits = [mark for panel in chart.panels for mark in panel.marks if isinstance(mark, Limit)]
    assert [(limit.name, limit.y) for limit in limits] == [
        ("limit: ttft_p99<500ms", 500.0),
        ("limit: tpot_median<40ms", 40.0),
    ]
    usual = ["TTFT p99, ms", "TPOT p99, ms", "Output tokens/s"]
    assert [panel.title for panel in drawn(*POINTS, slo=None).panels] == usual


def test_slo_met_missed_and_unjudged_runs_have_own_shapes() -> None:
    found = dots(drawn(*POINTS, (3.0, 700.0, None)))
    assert {look: list(mark.xs) for look, mark in found.items()} == {
        "met": [1.0, 2.0],
        "missed": [4.0],
        "open": [3.0],
    }
    assert found["missed"].texts == ["900 ms"]
    assert found["open"].name == "not judged"


@pytest.mark.parametrize("mark", [{"knee": 2.0}, SEARCHED])
def test_the_knee_or_what_was_found_has_a_ring_and_its_name(mark: dict[str, Any]) -> None:
    assert "ring" not in dots(drawn(*POINTS))
    chart = drawn(*POINTS, **mark)
    ring = dots(chart)["ring"]
    assert (list(ring.ys), ring.name) == ([30.0], "found" if "found" in mark else "knee")
    named = {label: whisker.below for whisker in marks(chart, Whiskers) for label in whisker.labels}
    assert named == {"2": True} | ({"4": False} if "found" in mark else {})


def test_a_search_has_its_bounds_as_whiskers_and_no_panel_of_throughput() -> None:
    levels = [
        bounded(1.0, 20.0, 19.0, 21.0),
        bounded(2.0, 400.0, 300.0, 450.0),
        bounded(4.0, 480.0, 400.0, None),
    ]
    chart = drawn(*POINTS, **SEARCHED, levels=levels)
    (panel,) = chart.panels
    whiskers = next(mark for mark in marks(chart, Whiskers) if mark.name)
    assert (list(whiskers.at), list(whiskers.lows)) == ([1.0, 2.0, 4.0], [19.0, 300.0, 400.0])
    assert list(whiskers.highs) == [21.0, 450.0, math.inf]
    assert dots(chart)["open"].name == "undecided"
    assert dict(chart.tooltip_rows())["confidence interval"] == [
        "19 ms to 21 ms",
        "300 ms to 450 ms",
        "> 400 ms",
    ]
    assert panel.height > 150


def test_value_on_failed_requests_stands_at_the_top() -> None:
    data = series(*POINTS[:2], **SEARCHED)
    data["points"][1]["result"]["failed"] = 5
    found = curve(
        data | {"levels": [bounded(1.0, 20.0, 19.0, 21.0), bounded(2.0, None, None, None)]}
    )
    assert found is not None
    missed = dots(found)["open"]
    assert (list(missed.ys), missed.texts) == ([math.inf], ["on failed requests"])
    assert found.panels[0].scale.share(math.inf) == 1.0


def test_limit_that_the_level_above_the_answer_fails_comes_first() -> None:
    def level(at: float, ttft: bool | None) -> dict[str, Any]:
        tpot = {"limit": "tpot_mean<40ms", "value": 8.0, "low": 7.0, "high": 9.0, "met": True}
        limit = {
            "limit": "ttft_p99<500ms",
            "value": 450.0,
            "low": 400.0,
            "high": 490.0,
            "met": ttft,
        }
        return {"level": at, "met": ttft, "runs": 1, "why": None, "slo": [tpot, limit]}

    slo = SEARCHED | {"slo": "tpot_mean<40ms,ttft_p99<500ms"}
    chart = drawn(*POINTS, **slo, levels=[level(1.0, True), level(2.0, True), level(4.0, None)])
    assert [panel.title for panel in chart.panels] == ["TTFT p99, ms", "TPOT mean, ms"]


def test_error_rate_is_in_percent_and_drawn_where_requests_failed() -> None:
    def level(at: float, share: float) -> dict[str, Any]:
        limit = {
            "limit": "error_rate<1%",
            "value": share,
            "low": 0.0,
            "high": 2 * share,
            "met": True,
        }
        return {"level": at, "met": True, "runs": 1, "why": None, "slo": [limit]}

    rates = SEARCHED | {"slo": "error_rate<1%"}
    (panel,) = drawn(
        *POINTS, **rates, levels=[level(1.0, 0.0), level(2.0, 0.004), level(4.0, 0.02)]
    ).panels
    assert panel.title == "Failed requests, %"
    assert [mark.y for mark in panel.marks if isinstance(mark, Limit)] == [1.0]
    (line,) = (mark for mark in panel.marks if isinstance(mark, Curve))
    assert line.ys == [0.0, 0.4, 2.0]
    assert (
        curve(series(*POINTS, **rates, levels=[level(at, 0.0) for at in (1.0, 2.0, 4.0)])) is None
    )


def test_a_run_without_an_answer_is_left_out() -> None:
    assert dots(drawn(*POINTS, (8.0, None, False))) == dots(drawn(*POINTS))


def test_single_run_is_drawn_and_no_run_has_no_curve() -> None:
    assert drawn(POINTS[0], slo=None).panels
    assert curve(series((1.0, None, None))) is None
    assert curve(series()) is None


def test_a_reader_is_told_of_each_run() -> None:
    told = dict(drawn(*POINTS, slo="ttft_p99<500ms").tooltip_rows())
    assert told["met"] == ["20 ms", "30 ms", ""]
    assert told["output"] == ["100 tok/s", "200 tok/s", "300 tok/s"]
