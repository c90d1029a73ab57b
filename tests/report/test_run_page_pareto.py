"""The Pareto chart of a sweep: tokens per second and GPU against tokens per second for a user."""

from typing import Any

from loadgen.document.charts.chart import Chart, Dots
from loadgen.report.result.series import Series
from loadgen.report.run_page.load_curve import pareto_chart
from tests.helpers import saved_json
from tests.helpers.run_facts import measured, result, steady


def sweep(
    *levels: tuple[float, float | None, float], gpus: int | None = 2, **changes: Any
) -> Series:
    """A series of levels, each with tok/s per user and output tok/s of the server."""
    snapshot = measured([steady()])
    one = saved_json.point(1.0, result(snapshot), snapshot, limits=None, saved=[])
    known = one["result"]["loadgen"]["efficiency"]
    points = []
    for level, user, output in levels:
        per_gpu = None if gpus is None else output / gpus
        found = known | {
            "output_tokens_per_s_per_user": user,
            "gpus": gpus,
            "output_tokens_per_s_per_gpu": per_gpu,
        }
        findings = one["result"]["loadgen"] | {
            "efficiency": found,
            "verdict": changes.get("verdict", "VALID"),
        }
        points.append(
            one
            | {
                "level": level,
                "verdict": findings["verdict"],
                "result": one["result"] | {"output_throughput": output, "loadgen": findings},
            }
        )
    kind = changes.get("kind", "sweep")
    return Series.from_dict(saved_json.begun(kind, "concurrency", None, "due") | {"points": points})


def drawn(series: Series) -> Chart:
    chart = pareto_chart(series)
    assert chart is not None
    return chart


def dots(series: Series) -> dict[str, tuple[list[float], list[float], list[str]]]:
    (panel,) = drawn(series).panels
    return {
        mark.name: (list(mark.xs), list(mark.ys), list(mark.labels))
        for mark in panel.marks
        if isinstance(mark, Dots)
    }


def test_levels_that_no_level_exceeds_in_both_are_the_front() -> None:
    shown = dots(sweep((1, 100.0, 200.0), (8, 80.0, 900.0), (16, 60.0, 800.0), (32, 40.0, 1600.0)))
    assert shown["Pareto front"] == ([40.0, 80.0, 100.0], [800.0, 450.0, 100.0], ["32", "8", "1"])
    assert shown["below the front"] == ([60.0], [400.0], ["16"])


def test_of_equal_speed_for_a_user_only_the_higher_throughput_is_on_the_front() -> None:
    shown = dots(sweep((1, 100.0, 200.0), (2, 100.0, 400.0)))
    assert (shown["Pareto front"][2], shown["below the front"][2]) == (["2"], ["1"])


def test_the_throughput_is_that_of_the_server_where_its_gpus_are_unknown() -> None:
    chart = drawn(sweep((1, 100.0, 200.0), (8, 80.0, 900.0), gpus=None))
    assert chart.panels[0].title == "Output tok/s"
    assert dots(sweep((1, 100.0, 200.0), (8, 80.0, 900.0), gpus=None))["Pareto front"][1] == [
        900.0,
        200.0,
    ]


def test_an_invalid_run_is_never_on_the_front() -> None:
    shown = dots(sweep((1, 100.0, 200.0), (8, 80.0, 900.0), verdict="INVALID"))
    assert list(shown) == ["INVALID"]


def test_there_is_no_chart_of_one_level_of_a_search_or_without_interactivity() -> None:
    assert pareto_chart(sweep((1, 100.0, 200.0))) is None
    assert pareto_chart(sweep((1, 100.0, 200.0), (8, 80.0, 900.0), kind="search")) is None
    assert pareto_chart(sweep((1, None, 200.0), (8, None, 900.0))) is None


def test_the_table_of_a_sweep_has_columns_for_a_user_and_a_gpu_where_gpus_are_known() -> None:
    levels = ((1.0, 100.0, 200.0), (8.0, 80.0, 900.0))
    with_gpus = saved_json.render(sweep(*levels).to_dict())
    assert "tok/s/user  tok/s/GPU" in with_gpus
    assert "tok/s/user" not in saved_json.render(sweep(*levels, gpus=None).to_dict())
