"""The charts on the HTML page of a result: curves, axes, limits and missing parts."""

from itertools import pairwise
from typing import Any, TypeVar

import pytest

from loadgen.config.settings import RunSettings
from loadgen.document.charts.chart import Band, Chart, Curve, Dots, Heat, Limit, Panel, Scatter
from loadgen.document.charts.scale import Linear, Log
from loadgen.report.run_page.charts import TimeColumns
from loadgen.util.accelerators import QUANTITIES
from tests.helpers.run_page_parts import charts, curves, texts
from tests.helpers.saved_results import big, ran

T = TypeVar("T")


def panels(chart: Chart) -> dict[str, Panel]:
    """Return the panels of a chart by their titles."""
    return {panel.title: panel for panel in chart.panels}


def marks(panel: Panel, kind: type[T]) -> list[T]:
    """Return the marks of a kind in a panel."""
    return [mark for mark in panel.marks if isinstance(mark, kind)]


def without(result: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the result as a version saved it that did not know a field."""
    found = {key: value for key, value in result["loadgen"].items() if key != name}
    return result | {"loadgen": found}


# -- latencies by percentile


def test_each_latency_has_a_panel_on_a_linear_axis() -> None:
    chart = charts(ran())["distributions"]
    assert [panel.title for panel in chart.panels] == [
        "TTFT, ms",
        "TPOT, ms",
        "ICL, ms",
        "E2EL, ms",
    ]
    assert all(isinstance(panel.scale, Linear) for panel in chart.panels)
    ttft, *_, e2el = chart.panels
    # Each axis ends near its greatest value.
    assert (ttft.scale.share(30), e2el.scale.share(150)) == (1.0, 1.0)


def test_distributions_end_at_the_last_supported_percentile() -> None:
    result = ran()
    found = curves(charts(result)["distributions"])
    ttft, icl = found["TTFT"], found["ICL"]
    told = [(10**x, y) for x, y in zip(ttft.xs, ttft.ys, strict=True) if y is not None]
    assert told[0] == (pytest.approx(1 / 0.98), pytest.approx(20.0, rel=0.01))
    assert 50 < told[-1][0] <= 60
    assert sum(y is not None for y in icl.ys) > len(told)
    assert icl.ys[-1] == pytest.approx(result["loadgen"]["latency_ms"]["icl"]["max"], rel=0.01)


def test_percentiles_count_from_the_clock_that_was_asked_for() -> None:
    result = ran(RunSettings(latency_from="sent"))
    result["loadgen"]["histograms"]["ttft_due"] = result["loadgen"]["histograms"]["e2el_due"]
    assert (curves(charts(result)["distributions"])["TTFT"].ys[0] or 0) == pytest.approx(
        20.0, rel=0.01
    )


def test_client_error_is_a_band_between_percentiles_where_it_is_known() -> None:
    result = ran()
    result["loadgen"]["client_error_ms"]["ttft_due"] = {
        "mean": 9.0,
        "p50": 1.0,
        "p90": 2.0,
        "p99": None,
    }
    (band,) = marks(panels(charts(result)["distributions"])["TTFT, ms"], Band)
    assert band.name == "timing error, at most 2 ms"
    # P50 and p90.
    assert (band.xs[0], band.xs[-1]) == (pytest.approx(0.3, abs=0.05), pytest.approx(1.0))
    widths = {round(high - low, 6) for low, high in zip(band.lows, band.highs, strict=True)}
    assert widths <= {2.0, 4.0}
    del result["loadgen"]["client_error_ms"]
    assert not marks(panels(charts(result)["distributions"])["TTFT, ms"], Band)


# -- requests in flight and TTFT


def test_requests_in_flight_and_ttft_share_the_first_chart() -> None:
    result = ran(failures=2)
    chart = charts(result)["in-flight"]
    assert next(iter(charts(result))) == "in-flight"
    flying, ttft = chart.panels
    assert [curve.name for curve in marks(flying, Curve)] == [
        *("in flight", "running (server)", "waiting (server)")
    ]
    found = curves(chart)
    assert list(found["in flight"].ys[:-1]) == result["loadgen"]["timeline"]["in_flight"]
    assert list(found["running (server)"].xs) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    requests, failed = marks(ttft, Scatter)
    assert ttft.title == "TTFT of each request, ms"
    assert (list(requests.xs[:3]), list(requests.ys[:3])) == ([0.0, 0.1, 0.2], [20.0, 21.0, 22.0])
    assert len(requests.xs) == 58
    assert (failed.failed, list(failed.xs)) == (True, [6.0, 6.0])


def test_percentiles_over_time_are_those_of_columns_with_enough_requests() -> None:
    found = curves(charts(big())["in-flight"])
    counts = big()["loadgen"]["timeline"]["ended"]
    for name, least in (("TTFT p50", 10), ("TTFT p99", 100)):
        shown = [y is not None for y in found[name].ys]
        assert shown[1:] == [count >= least for count in counts][1:]
    assert "TTFT p50" not in curves(charts(ran())["in-flight"])  # each request is a dot


def test_sample_of_many_requests_says_so() -> None:
    assert (
        charts(big())["in-flight"].panels[1].title.endswith(" of 100000 requests, ms, logarithmic")
    )


def test_result_without_single_requests_shows_ttft_by_columns() -> None:
    result = without(ran(), "request_sample")
    chart = charts(result)["in-flight"]
    assert list(curves(chart)["TTFT p99"].ys) == result["loadgen"]["timeline"]["ttft_ms"]["p99"]
    assert not marks(chart.panels[1], Scatter)
    assert not any(panel.title.startswith("E2EL") for panel in charts(result)["course"].panels)


def test_axis_is_logarithmic_where_a_few_are_far_above_the_others() -> None:
    result = ran()
    result["loadgen"]["request_sample"]["ttft_ms"][7] = 5000.0
    ttft = charts(result)["in-flight"].panels[1]
    assert (type(ttft.scale), ttft.title) == (Log, "TTFT of each request, ms, logarithmic")
    assert isinstance(charts(ran())["in-flight"].panels[1].scale, Linear)


def test_run_without_success_shows_what_was_in_flight() -> None:
    assert [panel.title for panel in charts(ran(failures=60))["in-flight"].panels] == ["Requests"]


# -- over time


def test_rates_are_of_columns_that_hold_ten_requests() -> None:
    result = ran(failures=2)
    over_time, chart = result["loadgen"]["timeline"], charts(result)["course"]
    ended = sum(over_time["ended"])
    found = curves(chart)
    columns = len(found["sent"].ys) - 1
    assert ended / columns >= 10
    assert found["sent"].xs[-1] == 24 * 0.25
    widths = [end - begin for begin, end in pairwise(found["sent"].xs)]
    assert sum(
        y * width for y, width in zip(found["ended"].ys, widths, strict=False) if y
    ) == pytest.approx(ended)
    assert list(found["output tokens"].ys[:-1]) == [
        4 * count for count in over_time["output_tokens"]
    ]
    (failed,) = marks(chart.panels[0], Dots)
    assert list(failed.xs) == [5.5 * 0.25, 17.5 * 0.25]
    assert dict(chart.tooltip_rows())["failed"][5] == "2"


def test_few_requests_are_one_column_and_the_last_one_may_be_narrow() -> None:
    columns = TimeColumns([0.25 * number for number in range(11)])
    assert columns.joined(9).ends == [0.0, 2.5]
    wide = columns.joined(30)
    assert wide.ends == [0.0, 1.0, 2.0, 2.5]
    assert wide.rates([1] * 10) == [4.0, 4.0, 4.0]
    assert columns.joined(1000).ends == columns.ends


def test_asked_rate_is_a_line_while_requests_were_due() -> None:
    result = ran()
    result["loadgen"]["provenance"]["schedule"]["duration_s"] = 5.0
    asked = curves(charts(result)["course"])["asked"]
    assert (list(asked.xs), list(asked.ys)) == ([0.0, 5.0, 5.0], [10.0, 10.0, None])
    assert "asked" not in curves(charts(ran(RunSettings()))["course"])  # all at once


@pytest.mark.parametrize(("strategy", "middle"), [("linear", 10.1), ("exponential", 2.0)])
def test_asked_ramp_is_a_rising_line(strategy: Any, middle: float) -> None:
    result = ran(
        RunSettings(ramp_up_strategy=strategy, ramp_up_start_rps=0.2, ramp_up_end_rps=20.0)
    )
    result["loadgen"]["provenance"]["schedule"]["duration_s"] = 6.0
    asked = curves(charts(result)["course"])["asked"]
    assert (asked.xs[0], asked.xs[-2], asked.ys[0], asked.ys[-2]) == (
        0.0,
        6.0,
        0.2,
        pytest.approx(20.0),
    )
    assert asked.ys[asked.xs.index(3.0)] == pytest.approx(middle)


def test_server_metrics_share_the_time_axis() -> None:
    chart = charts(ran())["course"]
    assert list(panels(chart)) == [
        "Requests/s",
        "E2EL of each request, ms",
        "Output tokens/s",
        "KV cache in use, %",
    ]
    assert [round(y or 0) for y in curves(chart)["KV cache in use"].ys] == [0, 10, 20, 30, 40, 50]
    assert panels(chart)["KV cache in use, %"].scale.share(60.0) == 1.0
    assert "KV cache in use" not in curves(charts(ran(said=False))["course"])


def test_power_of_several_gpus_is_added_up() -> None:
    result = ran()
    watts = [[100.0, 110.0, None], [200.0, 210.0, 220.0]]
    result["loadgen"]["server"]["gpus"] = [
        {
            "name": "a",
            "at_s": [-0.5, 1.0, 2.0],
            "series": dict.fromkeys(QUANTITIES, [None] * 3) | {"power_w": series},
        }
        for series in watts
    ]
    result["loadgen"]["server"]["gpu_levels"] = []
    assert list(curves(charts(result)["course"])["GPU power"].ys) == [320.0, 220.0]


def test_limits_of_the_slo_are_drawn_where_they_hold() -> None:
    found = charts(ran(RunSettings(slo="ttft_p99<50ms,icl_p99<20ms,e2el_p50<300ms")))
    limits = {
        name: [mark.y for panel in chart.panels for mark in marks(panel, Limit)]
        for name, chart in found.items()
    }
    assert limits == {
        "in-flight": [50.0],
        "distributions": [50.0, 20.0, 300.0],
        "course": [300.0],
        "gaps": [20.0],
    }


def test_limit_far_above_all_values_is_named_and_not_drawn() -> None:
    panel = charts(ran(RunSettings(slo="ttft_p99<5s")))["in-flight"].panels[1]
    assert panel.title == "TTFT of each request, ms (limit off the scale)"
    assert not marks(panel, Limit)
    assert panel.scale.share(30) == 1.0


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (ran(timeline=None), "There are no charts over time: no request has ended."),
        (
            without(ran(), "timeline"),
            "There are no charts over time: the loadgen version that saved this result kept no "
            "time series.",
        ),
    ],
)
def test_without_a_timeline_the_page_says_what_is_missing(result: dict[str, Any], why: str) -> None:
    assert why in texts(result)
    assert list(charts(result)) == ["distributions"]


def test_gap_map_leaves_out_the_shortest_gaps_and_says_how_many() -> None:
    result = ran()
    icl = result["loadgen"]["timeline"]["icl_ms"]
    icl["edges"] = [0.001, 0.002, *icl["edges"]]
    icl["counts"] = [
        [1 if number == 3 else 0, 0, *column] for number, column in enumerate(icl["counts"])
    ]
    for count, share in (
        (1, "0.0%"),
        (500, "6.6%"),
    ):  # events that were sent together are not between tokens
        icl["counts"][3][0] = count
        (panel,) = charts(result)["gaps"].panels
        (heat,) = marks(panel, Heat)
        assert heat.edges[0] >= 6.0
        assert panel.title.startswith(f"ICL, ms, without the {share} below ")


def test_where_no_gap_was_measured_there_is_no_map_of_them() -> None:
    result = ran()
    result["loadgen"]["timeline"]["icl_ms"] |= {"edges": [0.0], "counts": [[] for _ in range(24)]}
    assert "gaps" not in charts(result)
