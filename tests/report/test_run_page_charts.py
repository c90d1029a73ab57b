"""The charts on the HTML page of a result: curves, axes, limits and missing parts."""

from typing import Any

import pytest

from loadgen.config.settings import RunSettings
from loadgen.report.html import Dots, Heat, Limit
from loadgen.util.gpus import QUANTITIES
from tests.helpers.run_page_parts import charts, curves, texts
from tests.helpers.saved_results import ran


def test_distributions_end_at_the_last_supported_percentile() -> None:
    result = ran()
    chart = charts(result)["distributions"]
    found = curves(chart)
    assert set(found) == {"TTFT from due", "TPOT", "ICL", "E2EL from due", "Lag"}
    ttft, icl = found["TTFT from due"], found["ICL"]
    told = [(10**x, y) for x, y in zip(ttft.xs, ttft.ys, strict=True) if y is not None]
    assert told[0] == (pytest.approx(1 / 0.98), pytest.approx(20.0, rel=0.01))
    assert 50 < told[-1][0] <= 60
    assert sum(y is not None for y in icl.ys) > len(told)
    assert icl.ys[-1] == pytest.approx(result["loadgen"]["latency_ms"]["icl"]["max"], rel=0.01)


def test_curves_count_from_the_clock_that_was_asked_for() -> None:
    assert "TTFT from sent" in curves(charts(ran(RunSettings(latency_from="sent")))["distributions"])


def test_the_course_has_rates_of_its_columns_and_marks_failures() -> None:
    result = ran(failures=2)
    over_time, chart = result["loadgen"]["timeline"], charts(result)["course"]
    found = curves(chart)
    assert list(found["sent"].ys[:-1]) == [4 * count for count in over_time["sent"]]
    assert found["sent"].xs[-1] == 24 * 0.25
    assert list(found["in flight"].ys[:-1]) == over_time["in_flight"]
    assert list(found["output tokens"].ys[:-1]) == [4 * count for count in over_time["output_tokens"]]
    assert list(found["TTFT p99"].ys) == over_time["ttft_ms"]["p99"]
    (failed,) = (mark for mark in chart.panels[0].marks if isinstance(mark, Dots))
    assert list(failed.xs) == [5.5 * 0.25, 17.5 * 0.25]
    assert dict(chart.tooltip_rows())["failed"][5] == "2"


def test_server_metrics_share_the_time_axis() -> None:
    chart = charts(ran())["course"]
    found = curves(chart)
    assert [panel.title for panel in chart.panels] == [
        "Requests/s",
        "Requests",
        "Output tokens/s",
        "TTFT, ms",
        "KV cache in use, %",
    ]
    assert [round(y or 0) for y in found["KV cache in use"].ys] == [0, 10, 20, 30, 40, 50]
    assert list(found["running, says the server"].xs) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert "KV cache in use" not in curves(charts(ran(said=False))["course"])


def test_power_of_several_gpus_is_added_up() -> None:
    result = ran()
    watts = [[100.0, 110.0, None], [200.0, 210.0, 220.0]]
    result["loadgen"]["server"]["gpus"] = [
        {"name": "a", "at_s": [-0.5, 1.0, 2.0], "series": dict.fromkeys(QUANTITIES, [None] * 3) | {"power_w": series}}
        for series in watts
    ]
    result["loadgen"]["server"]["gpu_levels"] = []
    assert list(curves(charts(result)["course"])["GPU power"].ys) == [320.0, 220.0]


def test_limits_of_the_slo_are_drawn_where_they_hold() -> None:
    found = charts(ran(RunSettings(slo="ttft_p99<50ms,icl_p99<20ms")))
    limits = {
        name: [mark.y for panel in chart.panels for mark in panel.marks if isinstance(mark, Limit)]
        for name, chart in found.items()
    }
    assert (limits["course"], limits["gaps"]) == ([50.0], [20.0])


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (ran(timeline=None), "There are no charts over time: no request has ended."),
        (
            {
                **(one := ran()),
                "loadgen": {name: value for name, value in one["loadgen"].items() if name != "timeline"},
            },
            "There are no charts over time: the loadgen version that saved this result kept no time series.",
        ),
    ],
)
def test_without_a_timeline_the_page_says_what_is_missing(result: dict[str, Any], why: str) -> None:
    assert why in texts(result)
    assert list(charts(result)) == ["distributions"]


def test_gap_map_leaves_out_rare_short_gaps() -> None:
    result = ran()
    icl = result["loadgen"]["timeline"]["icl_ms"]
    icl["edges"] = [0.001, 0.002, *icl["edges"]]
    icl["counts"] = [[1 if number == 3 else 0, 0, *column] for number, column in enumerate(icl["counts"])]
    (heat,) = (mark for mark in charts(result)["gaps"].panels[0].marks if isinstance(mark, Heat))
    assert heat.edges[0] >= 6.0
    icl["counts"][3][0] = 500
    (heat,) = (mark for mark in charts(result)["gaps"].panels[0].marks if isinstance(mark, Heat))
    assert heat.edges[0] == 0.001


def test_where_no_gap_was_measured_there_is_no_map_of_them() -> None:
    result = ran()
    result["loadgen"]["timeline"]["icl_ms"] |= {"edges": [0.0], "counts": [[] for _ in range(24)]}
    assert "gaps" not in charts(result)
