"""The load curve of several runs: throughput against latency."""

from typing import Any

import pytest

from loadgen.report.html import Chart, Curve, Dots, Limit
from tests.helpers import saved_json
from tests.helpers.run_facts import measured, result, steady
from tests.helpers.saved_json import curve


def series(*points: tuple[float | str, float | None, bool | None], **changes: Any) -> dict[str, Any]:
    """Points of a level, a latency and whether the SLO is met."""
    snapshot = measured([steady()])
    one = saved_json.point(1.0, result(snapshot), snapshot, limits=None, saved=[])
    rows = [
        one
        | {
            "level": level,
            "met": met,
            "latency_ms": dict.fromkeys(one["latency_ms"], latency),
            "result": one["result"] | {"output_throughput": None if latency is None else 100.0 * number},
        }
        for number, (level, latency, met) in enumerate(points, 1)
    ]
    limits = "ttft_p99<500ms,tpot_median<40ms"
    return saved_json.begun("sweep", "rate", limits, "due") | {"points": rows} | changes


POINTS = ((1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False), ("inf", 9000.0, None))


def drawn(*points: tuple[float | str, float | None, bool | None], **changes: Any) -> Chart:
    found = curve(series(*points, **changes))
    assert found is not None
    return found


def dots(chart: Chart) -> dict[str, Dots]:
    """Those of the upper panel, by their look."""
    return {mark.look: mark for mark in chart.panels[0].marks if isinstance(mark, Dots)}


def test_a_line_goes_through_the_runs_in_the_order_of_their_levels() -> None:
    (line,) = (mark for mark in drawn(*reversed(POINTS)).panels[0].marks if isinstance(mark, Curve))
    assert line.ys == [20.0, 30.0, 900.0, 9000.0]


def test_the_panels_are_of_what_the_slo_limits_and_show_the_limit() -> None:
    chart = drawn(*POINTS)
    assert [panel.title for panel in chart.panels] == ["TTFT p99, ms", "TPOT p50, ms"]
    limits = [mark for panel in chart.panels for mark in panel.marks if isinstance(mark, Limit)]
    assert [(limit.name, limit.y) for limit in limits] == [
        ("SLO: ttft_p99<500ms", 500.0),
        ("SLO: tpot_median<40ms", 40.0),
    ]
    assert [panel.title for panel in drawn(*POINTS, slo=None).panels] == ["TTFT p99, ms", "TPOT p99, ms"]


def test_slo_met_missed_and_unjudged_runs_have_own_shapes() -> None:
    found = dots(drawn(*POINTS))
    assert {look: mark.labels for look, mark in found.items()} == {
        "met": ["1", "2"],
        "missed": ["4"],
        "open": ["inf"],
    }
    assert found["missed"].texts == ["4: TTFT 900 ms"]


@pytest.mark.parametrize("mark", [{"knee": 2.0}, {"found": {"level": 2.0, "fails": None, "end": "floor", "last": 2.0}}])
def test_the_knee_or_what_was_found_has_a_ring(mark: dict[str, Any]) -> None:
    assert "ring" not in dots(drawn(*POINTS))
    ring = dots(drawn(*POINTS, **mark))["ring"]
    assert (list(ring.ys), ring.name) == ([30.0], next(iter(mark)))


def test_a_run_without_an_answer_is_left_out() -> None:
    assert drawn(*POINTS, (8.0, None, False)) == drawn(*POINTS)


def test_single_run_is_drawn_and_no_run_has_no_curve() -> None:
    assert drawn(POINTS[0], slo=None).panels
    assert curve(series((1.0, None, None))) is None
    assert curve(series()) is None


def test_a_reader_is_told_of_each_run() -> None:
    told = dict(drawn(*POINTS).tooltip_rows())
    assert told["met the SLO"] == ["1: TPOT 20 ms", "2: TPOT 30 ms", "", ""]
