"""Several runs together: their points, and the table of a sweep or a search."""

import math

import pytest

from loadgen.checks import Check
from loadgen.report import render_series
from loadgen.report.result.series import Series
from loadgen.report.series import REPEATED, TOO_FEW, rows
from loadgen.report.series_answer import answer
from loadgen.util.terminal_text import Screen
from tests.helpers import run_facts, saved_json
from tests.helpers.series_points import columns, result, swept, together


def test_repeated_runs_are_named_by_their_load_and_not_by_a_level() -> None:
    runs = [result(math.inf, 20), result(math.inf, 200), result(math.inf, 30)]
    data = saved_json.begun("sweep", "rate", "ttft_p99<100ms", "due") | {
        "load": "a trace",
        "points": runs,
    }
    series = Series.from_dict(data)
    assert [text for text, _ in answer(series).parts][:2] == [
        "SLO MISSED: 2 of 3 runs met ttft_p99 < 100 ms",
        "3 runs of one load, a trace",
    ]
    shown = render_series(series)
    assert shown.startswith("Repeated runs of one load: model org/tiny. 3 runs; ")
    assert "rate" not in shown
    assert "inf" not in shown
    assert columns(series)[:2] == [
        ("run", ["1", "2", "3"]),
        ("SLO", ["met", "MISSED", "met"]),
    ]


def test_a_point_is_held_against_the_slo() -> None:
    assert result(1.0, 20, 30)["met"] is True
    missed = result(1.0, 20, 300)
    assert missed["met"] is False
    assert [row["met"] for row in missed["slo"]] == [False, True]
    assert missed["latency_ms"]["ttft_p50"] == pytest.approx(160, rel=0.01)


def test_point_with_failures_misses_slo_and_keeps_latencies() -> None:
    ran = run_facts.measured([run_facts.steady(0), run_facts.failed(1)])
    point = saved_json.point(
        1.0, run_facts.result(ran), ran, limits="ttft_p99<1s,ttft_p50<1s", saved=[]
    )
    assert [(row["beyond"], row["met"]) for row in point["slo"]] == [(True, False), (False, True)]
    assert point["met"] is False
    assert point["latency_ms"]["ttft_p99"] == pytest.approx(20, rel=1e-3)


def test_a_run_that_is_not_to_be_believed_neither_meets_nor_misses_anything() -> None:
    ran = run_facts.measured([run_facts.steady()])
    data = run_facts.result(ran)
    data["loadgen"]["verdict"] = "INVALID"
    assert saved_json.point(1.0, data, ran, limits="ttft_p99<1s", saved=[])["met"] is None


def test_sweep_has_a_row_for_each_run_in_the_order_of_the_levels() -> None:
    lines = saved_json.render(
        together(
            result(8.0, 300),
            result(2.0, 20),
            result(4.0, 30, met=None, why="interrupted"),
            kind="sweep",
        )
    ).splitlines()
    head = next(number for number, line in enumerate(lines) if "TTFT p50" in line)
    rows = [line.split() for line in lines[head + 1 : head + 4]]
    assert [(row[0], row[1]) for row in rows] == [("2", "met"), ("4", "-"), ("8", "MISSED")]
    assert "E2EL p95" in lines[head]  # limited, and no usual column
    assert lines[head].count("TTFT p99") == 1
    assert "At 4 req/s: interrupted" in lines
    assert rows[0][2:4] == ["20.0*", "20.0*"]  # one value is few for any percentile
    assert "* too few values; see the confidence interval in the result of the run" in lines


def test_the_rate_of_a_level_is_that_between_answers_and_of_a_burst_the_throughput() -> None:
    many, burst = result(100.0, *[20] * 10), result(float("inf"), 2000)
    series = Series.from_dict(together(many, burst, kind="sweep"))
    between, throughput = [row.answer_rate for row in rows(series)]
    assert between == pytest.approx(rows(series)[0].answers_per_s)
    assert throughput == burst["result"]["request_throughput"]
    assert [head for head, _ in columns(series) if head.endswith("/s")] == ["req/s", "tok/s"]


def test_rate_of_answers_of_a_level_is_that_of_all_its_runs() -> None:
    (row,) = rows(Series.from_dict(together(result(4.0, *[20] * 11), result(4.0, *[20] * 20, 120))))
    assert row.answers_per_s == pytest.approx((10 + 20) / (0.1 + 0.3))


def test_search_has_a_row_for_each_level_with_its_runs() -> None:
    few = {"met": None, "why": TOO_FEW}
    data = together(
        result(2.0, 20),
        result(4.0, 90, **few),
        result(4.0, 95, **few),
        end="edge",
        level=2.0,
        fails=4.0,
    )
    lines = saved_json.render(data).splitlines()
    head = next(number for number, line in enumerate(lines) if "TTFT p99" in line)
    rows = [line.split() for line in lines[head : head + 3]]
    assert rows[0] == ["rate", "SLO", "TTFT", "p99", "E2EL", "p95", "req/s", "tok/s", "runs"]
    assert (rows[1][:2], rows[1][-1]) == (["2", "met"], "1")
    assert (rows[2][:2], rows[2][-1]) == (["4", "undecided"], "2")
    whole = "4 req/s is undecided: 2 runs have too few requests; "
    assert (
        " ".join(map(str.strip, lines)).count(f"{whole}`--duration 1` would halve the intervals")
        == 1
    )
    assert TOO_FEW not in "".join(lines)


def test_level_of_a_search_is_judged_by_all_its_runs() -> None:
    few = {"met": None, "why": TOO_FEW}
    data = together(
        result(4.0, 90, **few), result(4.0, 95, **few), end="edge", level=4.0, fails=5.0
    )
    limit = {"limit": "ttft_p99<100ms", "value": 93.0, "low": 80.0, "high": 99.0, "met": True}
    data["levels"] = [{"level": 4.0, "met": True, "runs": 2, "why": None, "slo": [limit]}]
    (row,) = rows(Series.from_dict(data))
    assert (row.outcome, len(row.runs), row.judged.slo[0].high) == ("met", 2, 99.0)
    shown = dict(columns(Series.from_dict(data), with_bounds=True))
    assert (shown["TTFT p99"], shown["confidence interval"]) == (["93.00"], ["80.00 to 99.00"])


def test_run_that_sent_all_at_once_is_a_remark_of_a_search_and_a_row_of_a_sweep() -> None:
    burst = result(float("inf"), 2000, met=None, why="all at once, to see where to begin")
    lines = saved_json.render(together(burst, result(2.0, 20), end="floor", level=2.0)).splitlines()
    assert not any(line.strip().startswith("inf") for line in lines)
    assert any(
        line.startswith("A first run sent all its requests at once, to choose the first rate: ")
        for line in lines
    )
    swept_lines = saved_json.render(together(burst, result(2.0, 20), kind="sweep")).splitlines()[
        :-2
    ]
    assert [line.split()[0] for line in swept_lines if line.strip().startswith(("2 ", "inf "))] == [
        "2",
        "inf",
    ]


def test_a_percentile_of_enough_values_has_no_mark() -> None:
    lines = saved_json.render(together(result(2.0, *[20.0] * 130), kind="sweep")).splitlines()
    row = next(line.split() for line in lines if line.split()[:1] == ["2"])
    assert row[2:4] == ["20.00", "20.00*"]
    assert row[6] == "40.00"  # E2EL p95 needs 130


def test_answer_has_colours_on_request_and_nothing_else_that_moves_a_terminal() -> None:
    data = Series.from_dict(
        together(result(4.0, 20), end="floor", level=4.0) | {"partial": "\x1b[2Jgone"}
    )
    lines = render_series(data, screen=Screen(has_colours=True), saved=["a.json"]).splitlines()
    (said,) = [line for line in lines if line.startswith("\x1b[32mAT LEAST: 4 req/s met")]
    assert "\x1b[33mended early: \\x1b[2Jgone\x1b[0m" in said
    assert lines[-1] == "Saved: a.json"


def test_reasons_stand_once_with_their_levels() -> None:
    points = [result(rate, 20) for rate in (1.0, 2.0, 4.0)]
    for point, reasons in zip(
        points,
        (["lag p99: 3 ms"], ["lag p99: 4 ms", "stall: 5 ms"], ["lag p99: 2 ms"]),
        strict=True,
    ):
        point["verdict"] = "SUSPECT"
        point["result"]["loadgen"]["reasons"] = reasons
    lines = saved_json.render(together(*points, kind="sweep")).splitlines()
    assert [line for line in lines if line.startswith("SUSPECT ")] == [
        "SUSPECT in all runs: lag p99",
        "SUSPECT at 2 req/s: stall",
    ]
    assert "measurement SUSPECT" in "".join(lines)
    assert "verdict" not in "".join(lines)  # the same in all rows
    points[0]["verdict"] = "VALID"
    assert "verdict" in saved_json.render(together(*points, kind="sweep"))


def test_runs_of_the_same_prompts_are_noted() -> None:
    one, other = result(1.0, 20), result(2.0, 20)
    for point, sha in ((one, "a"), (other, "b")):
        point["result"]["loadgen"]["prompts_sha256"] = sha
    assert together(one, other)["notes"] == []
    other["result"]["loadgen"]["prompts_sha256"] = "a"
    assert together(one, other)["notes"] == [REPEATED]


def test_an_slo_on_a_percentile_of_too_few_requests_is_not_met_by_a_run() -> None:
    few = Check("too few for the SLO", False, "3 values", "662", "send more", group="D")
    ran = run_facts.measured([run_facts.steady(index) for index in range(3)])
    data = run_facts.result(ran, checks=[few])
    found = saved_json.point(1.0, data, ran, limits="ttft_p99<1s", saved=[])
    assert (found["met"], found["why"]) == (None, TOO_FEW)
    missed = saved_json.point(1.0, data, ran, limits="ttft_p99<1ms", saved=[])
    assert missed["met"] is False


def test_a_quiet_sweep_of_five_levels_takes_ten_lines() -> None:
    points = [swept(level, 300.0) for level in (1.0, 2.0, 4.0, 8.0, 16.0)]
    data = Series.from_dict(together(*points, kind="sweep"))
    assert len(render_series(data, is_brief=True).splitlines()) <= 10
