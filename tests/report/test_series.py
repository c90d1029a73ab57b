"""Several runs together: their table, the result of a search, and the knee."""

import math
from typing import Any

import pytest

from loadgen.checks import Check
from loadgen.report import render_series
from loadgen.report.result.series import Series
from loadgen.report.series import MIN_FOR_KNEE, REPEATED, TOO_FEW, rows, table
from loadgen.report.series_answer import answer, slo_text
from loadgen.report.series_next_step import after_series
from loadgen.report.summary_line import Colour
from loadgen.util.terminal_text import Screen
from tests.helpers import run_facts, saved_json
from tests.helpers.saved_results import search


def result(rate: float, *ttft_ms: float, **changes: Any) -> dict[str, Any]:
    """A point of a run at a rate, whose requests had these TTFTs."""
    ran = run_facts.measured(
        [run_facts.steady(index, due=10 * index, ttft=each) for index, each in enumerate(ttft_ms)]
    )
    schedule = run_facts.due_at(*[10 * index for index in range(len(ttft_ms))])
    data = run_facts.result(ran, schedule=schedule)
    data["loadgen"]["provenance"]["prompts"] = {"sha256": str(rate)}
    return (
        saved_json.point(rate, data, ran, limits="ttft_p99<100ms,e2el_p95<1s", saved=[]) | changes
    )


def swept(level: float, e2el_ms: float) -> dict[str, Any]:
    """A point of which all but the mean E2EL is the same."""
    point = enough(result(level, 20))
    return point | {"latency_ms": point["latency_ms"] | {"e2el_mean": e2el_ms}}


def enough(point: dict[str, Any]) -> dict[str, Any]:
    """The point with as many requests as a knee needs."""
    return point | {"result": point["result"] | {"completed": MIN_FOR_KNEE}}


def together(*points: dict[str, Any], kind: str = "search", **found: Any) -> dict[str, Any]:
    data = saved_json.begun(kind, "rate", "ttft_p99<100ms,e2el_p95<1s", "due")
    data["points"] = list(points)
    if found:
        data["found"] = {"level": None, "fails": None, "last": None} | found
    saved_json.conclude(data)
    return data


def answer_line(data: dict[str, Any]) -> str:
    """The answer in one line."""
    return answer(Series.from_dict(data)).text


def columns(series: Series, *, with_bounds: bool = False) -> list[tuple[str, list[str]]]:
    """The columns of the table: their headings, and the texts of their cells."""
    shown = table(series, with_bounds=with_bounds)
    texts = [["".join(span.text for span in line) for (line,) in row] for row in shown.rows]
    return [
        (head, list(cells))
        for head, cells in zip(shown.head, zip(*texts, strict=True), strict=True)
    ]


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


@pytest.mark.parametrize(
    ("found", "said", "bound"),
    [
        (
            {"end": "edge", "level": 4.0, "fails": 4.125},
            "FOUND: 4 req/s is the highest rate that met {} (1 run)",
            "4.125 missed it",
        ),
        (
            {"end": "floor", "level": 4.0},
            "AT LEAST: 4 req/s met {}",
            "nothing failed up to 4, and the search ended there",
        ),
        (
            {"end": "none", "fails": 4.125},
            "SLO MISSED: no request rate met {}",
            "the lowest that was tried, 4.125 req/s, missed it",
        ),
        (
            {"end": "client", "level": 4.0, "last": 8.0},
            "AT LEAST: 4 req/s met {}",
            "at 8 req/s the client, not the server, was the limit",
        ),
        (
            {"end": "client", "last": 8.0},
            "TOO FEW: nothing is known of the server",
            "at 8 req/s the client, not the server, was the limit",
        ),
        (
            {"end": "early", "level": 4.0},
            "AT LEAST: 4 req/s met {}",
            "the search ended early",
        ),
        ({"end": "early"}, "TOO FEW: the search ended early", "measurement VALID"),
    ],
)
def test_answer_of_a_search_begins_with_its_state_and_the_level(
    found: dict[str, Any], said: str, bound: str
) -> None:
    points = [result(4.0, 20), result(4.125, 200, met=False)]
    last = answer_line(together(*points, **found))
    assert last.split(" | ")[:2] == [said.format("ttft_p99 < 100 ms, e2el_p95 < 1 s"), bound]


@pytest.mark.parametrize(("fails", "above"), [(None, "no upper bound"), (8.0, "8 at most")])
def test_answer_with_disturbed_levels_says_what_undisturbed_runs_support(
    fails: float | None, above: str
) -> None:
    missed = {"met": False, "runs": 1, "why": None, "slo": []}
    points = [result(2.0, 20), result(4.0, 20), result(5.0, 200, met=False)]
    data = together(*points, end="disturbed", level=4.0, fails=fails)
    data["levels"] = [
        missed | {"level": 2.0, "doubted": "requests sent late"},
        missed | {"level": 4.0, "met": True},
        missed | {"level": 5.0, "doubted": "other programs used the CPU"},
    ]
    assert answer_line(data).split(" | ")[:2] == [
        "AT LEAST: 4 req/s met ttft_p99 < 100 ms, e2el_p95 < 1 s",
        f"5 missed it in disturbed runs alone: undisturbed ones show {above}",
    ]
    assert [row.outcome for row in rows(Series.from_dict(data))][-1] == "MISSED, disturbed"
    assert after_series(Series.from_dict(data)).startswith("search again when nothing else runs")


def test_level_that_too_few_requests_judge_could_not_be_confirmed() -> None:
    points = [result(4.0, 20), result(4.125, 200, met=None, why=TOO_FEW)]
    data = together(*points, end="edge", level=4.0, fails=4.125)
    assert "4.125 is undecided" in answer_line(data)


@pytest.mark.parametrize(
    ("level", "said"), [(1.0, "1 request in flight"), (8.0, "8 requests in flight")]
)
def test_answer_of_a_concurrency_is_singular_or_plural(level: float, said: str) -> None:
    data = together(result(level, 20), end="edge", level=level, fails=level + 1) | {
        "over": "concurrency"
    }
    assert answer_line(data).startswith(
        f"FOUND: {said} is the highest concurrency that met ttft_p99 < 100 ms"
    )


def test_answer_has_colours_on_request_and_nothing_else_that_moves_a_terminal() -> None:
    data = Series.from_dict(
        together(result(4.0, 20), end="floor", level=4.0) | {"partial": "\x1b[2Jgone"}
    )
    lines = render_series(data, screen=Screen(has_colours=True), saved=["a.json"]).splitlines()
    (said,) = [line for line in lines if line.startswith("\x1b[32mAT LEAST: 4 req/s met")]
    assert "\x1b[33mended early: \\x1b[2Jgone\x1b[0m" in said
    assert lines[-1] == "Saved: a.json"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("ttft_p90<300ms", "ttft_p90 < 300 ms"),
        ("ttft_p99<=500,error_rate<1%", "ttft_p99 <= 500 ms, error_rate < 1%"),
        ("e2el_mean< 2s,error_rate<0.01", "e2el_mean < 2 s, error_rate < 0.01"),
    ],
)
def test_slo_is_spelled_with_its_units(limits: str, said: str) -> None:
    assert slo_text(limits) == said


def test_highest_level_of_valid_runs_is_named_where_the_answer_is_of_suspect_ones() -> None:
    data = search((1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False))
    assert "VALID runs" not in saved_json.render(data)
    data["points"][1]["verdict"] = "SUSPECT"
    data["points"][1]["result"]["loadgen"]["reasons"] = ["requests sent late: 3 ms"]
    assert answer_line(data).endswith(" | measurement SUSPECT: requests sent late")
    shown = saved_json.render(data)
    assert "The highest level that met the SLO in VALID runs alone is 1 req/s" in shown


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


class TestKnee:
    def test_knee_is_where_throughput_by_latency_is_highest(self) -> None:
        """Twice the tokens/s for half as much latency again are worth it; a quarter more for
        twice the latency not.
        """
        one = enough(result(1.0, 20.0))
        points = [
            one
            | {
                "level": level,
                "verdict": "VALID",
                "latency_ms": one["latency_ms"] | {"e2el_mean": e2el},
                "result": one["result"] | {"output_throughput": tps},
            }
            for level, tps, e2el in ((1, 100.0, 100.0), (2, 200.0, 150.0), (4, 250.0, 300.0))
        ]
        found = saved_json.strongest(points)
        assert found is not None
        assert found["level"] == 2
        assert saved_json.strongest(points[:2]) is None
        assert saved_json.strongest([*points[:2], points[2] | {"verdict": "INVALID"}]) is None

    def test_a_level_of_few_requests_leaves_it_open(self) -> None:
        levels = ((1.0, 200.0), (2.0, 100.0), (4.0, 900.0))
        *others, last = [swept(level, e2el) for level, e2el in levels]
        few = last | {"result": last["result"] | {"completed": MIN_FOR_KNEE - 1}}
        data = together(*others, few, kind="sweep") | {"slo": None}
        assert data["knee"] is None
        assert answer_line(data).startswith(
            "TOO FEW: 99 requests at a level, and a knee needs 100 | "
        )
        said = answer(Series.from_dict(data)).next_step
        assert said == "send more requests at each level: `--num-prompts 100`"

    def test_a_sweep_says_it_and_a_search_has_another_answer(self) -> None:
        points = [swept(level, e2el) for level, e2el in ((1.0, 200.0), (2.0, 100.0), (4.0, 900.0))]
        data = together(*points, kind="sweep")
        assert data["knee"] == 2.0
        knee = "KNEE AT 2 req/s: the highest ratio of tokens/s to mean E2EL"
        assert knee in saved_json.render(data).splitlines()
        without_limits = answer_line(data | {"slo": None})
        assert without_limits.startswith(f"{knee} | at 2 req/s: TTFT p50 20 ms, ")
        assert "KNEE" not in saved_json.render(together(*points, end="floor", level=4.0))

    @pytest.mark.parametrize("beyond", [[], [("INVALID", 8.0)]])
    def test_the_last_level_is_none(self, beyond: list[tuple[str, float]]) -> None:
        """Nothing is known of what comes after it."""
        points = [swept(level, 300.0 / level) for level in (1.0, 2.0, 4.0)]
        points += [swept(level, 10.0) | {"verdict": verdict} for verdict, level in beyond]
        data = together(*points, kind="sweep")
        assert data["knee"] is None
        assert "NO LIMIT UP TO 4 req/s: the highest rate tested" in saved_json.render(data)


def test_what_was_found_stands_before_doubts_and_the_next_step_is_to_repeat() -> None:
    data = search((1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False))
    for point in data["points"]:
        point["verdict"] = "SUSPECT"
        point["result"]["loadgen"]["reasons"] = ["requests sent late: 3 ms"]
    assert answer_line(data).startswith("FOUND: 2 req/s is the highest rate that met ")
    assert after_series(Series.from_dict(data)).startswith(
        "repeat on an idle machine; then confirm 2 req/s: "
    )


def test_a_sweep_is_no_limit_where_its_highest_level_was_overloaded() -> None:
    points = [swept(level, 300.0 / level) for level in (1.0, 2.0, 4.0)]
    points[-1]["result"]["loadgen"]["overloaded"] = True
    data = together(*points, kind="sweep") | {"slo": None}
    assert answer_line(data).startswith("NO KNEE UP TO 4 req/s: the highest rate tested | ")


def test_runs_of_the_same_prompts_are_noted() -> None:
    one, other = result(1.0, 20), result(2.0, 20)
    for point, sha in ((one, "a"), (other, "b")):
        point["result"]["loadgen"]["prompts_sha256"] = sha
    assert together(one, other)["notes"] == []
    other["result"]["loadgen"]["prompts_sha256"] = "a"
    assert together(one, other)["notes"] == [REPEATED]


@pytest.mark.parametrize(
    ("met", "said", "bound"),
    [
        ((True, True, False), "FOUND: 2 req/s is the highest rate that met {}", "4 missed it"),
        ((True, True, None), "AT LEAST: 2 req/s met {}", "4 is undecided"),
        (
            (True, True, True),
            "NO LIMIT UP TO 4 req/s: the highest rate tested met {}",
            "measurement VALID",
        ),
        ((True, False, True), "TOO FEW: 1, 4 req/s met {}", "2 req/s missed it"),
        ((False, None, False), "SLO MISSED: no level met {}", "tried: 1, 2, 4 req/s"),
        (
            (None, None, None),
            f"TOO FEW: 1 request at a level, and a knee needs {MIN_FOR_KNEE}",
            "measurement VALID",
        ),
    ],
)
def test_answer_of_a_sweep_is_which_levels_meet_the_slo(
    met: tuple[bool | None, ...], said: str, bound: str
) -> None:
    points = [result(rate, 20, met=each) for rate, each in zip((1.0, 2.0, 4.0), met, strict=True)]
    last = answer_line(together(*points, kind="sweep"))
    assert last.split(" | ")[:2] == [said.format("ttft_p99 < 100 ms, e2el_p95 < 1 s"), bound]


def test_a_sweep_says_in_how_many_runs_requests_failed() -> None:
    ran = run_facts.measured([run_facts.steady(0), run_facts.failed(1)])
    broken = saved_json.point(2.0, run_facts.result(ran), ran, limits=None, saved=[])
    told = Series.from_dict(together(result(1.0, 20), broken, kind="sweep"))
    assert ("requests failed in 1 of 2 runs", Colour.RED) in list(answer(told).parts)


def test_series_of_no_judged_runs_says_what_was_run() -> None:
    points = [result(rate, 20) for rate in (1.0, 2.0)]
    data = together(*points, kind="sweep") | {"slo": None}
    assert answer_line(data) == "MEASURED: 2 runs at 1, 2 req/s | measurement VALID"


def test_a_series_in_which_nothing_succeeded_has_failed() -> None:
    ran = run_facts.measured([run_facts.failed(index) for index in range(3)])
    points = [
        saved_json.point(level, run_facts.result(ran), ran, limits=None, saved=[])
        for level in (1.0, 2.0)
    ]
    series = Series.from_dict(together(*points, kind="sweep"))
    (first, colour), *_ = answer(series).parts
    assert (first, colour) == ("FAILED: 6 of 6 requests failed", Colour.RED)
    assert {row.verdict for row in rows(series)} == {"FAILED"}


def test_an_slo_on_a_percentile_of_too_few_requests_is_not_met_by_a_run() -> None:
    few = Check("too few for the SLO", False, "3 values", "662", "send more", group="D")
    ran = run_facts.measured([run_facts.steady(index) for index in range(3)])
    data = run_facts.result(ran, checks=[few])
    found = saved_json.point(1.0, data, ran, limits="ttft_p99<1s", saved=[])
    assert (found["met"], found["why"]) == (None, TOO_FEW)
    missed = saved_json.point(1.0, data, ran, limits="ttft_p99<1ms", saved=[])
    assert missed["met"] is False


def test_a_search_that_ended_early_tells_the_level_that_missed() -> None:
    ends = {"end": "early", "level": 2.0, "fails": 4.0}
    data = together(result(2.0, 20), result(4.0, 200), **ends)
    texts = [text for text, _ in answer(Series.from_dict(data)).parts]
    assert texts[:3] == [
        "AT LEAST: 2 req/s met ttft_p99 < 100 ms, e2el_p95 < 1 s",
        "the search ended early",
        "4 missed it",
    ]


def test_an_answer_from_runs_that_are_not_valid_is_not_green() -> None:
    good, doubtful = (
        together(result(2.0, 20, verdict=verdict), end="floor", level=2.0)
        for verdict in ("VALID", "SUSPECT")
    )
    assert answer(Series.from_dict(good)).parts[0][1] is Colour.GREEN
    assert answer(Series.from_dict(doubtful)).parts[0][1] is Colour.YELLOW


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (
            {"end": "edge", "level": 4.0, "fails": 4.125},
            "confirm 4 req/s: `loadgen run --request-rate "
            '4 --num-runs 3 --slo "ttft_p99<100ms,e2el_p95<1s"`, with ',
        ),
        ({"end": "none", "fails": 4.0}, "loosen ttft_p99<100ms, or make the server faster"),
        ({"end": "client", "last": 8.0}, "search again on a faster machine: `loadgen doctor` "),
        ({"end": "early"}, "search again, to the end"),
    ],
)
def test_next_step_of_a_search_is_the_load_to_use_or_what_to_change(
    found: dict[str, Any], told: str
) -> None:
    data = together(result(4.0, 200 if found["end"] == "none" else 20), **found)
    assert after_series(Series.from_dict(data)).startswith(told)


@pytest.mark.parametrize(
    ("met", "told"),
    [
        (
            (True, True, False),
            "use 2 req/s as the limit, or find the highest rate that meets it: `loadgen "
            'search --request-rate 2 --slo "ttft_p99<100ms,e2el_p95<1s"`, with ',
        ),
        ((True, False, True), "repeat it with more requests, `--num-prompts 4`: the levels "),
        (
            (False, False, False),
            "find the highest rate that meets it: `loadgen search --request-rate 0.5 --slo ",
        ),
    ],
)
def test_next_step_of_a_sweep_is_the_load_to_use_or_where_to_look(
    met: tuple[bool, ...], told: str
) -> None:
    points = [result(rate, 20, met=each) for rate, each in zip((1.0, 2.0, 4.0), met, strict=True)]
    data = together(*points, kind="sweep")
    assert after_series(Series.from_dict(data)).startswith(told)


def test_next_step_of_a_sweep_without_limits_follows_from_its_knee() -> None:
    def told(*levels: tuple[float, float]) -> str:
        points = [swept(level, e2el) for level, e2el in levels]
        return after_series(Series.from_dict(together(*points, kind="sweep") | {"slo": None}))

    assert told((1.0, 200.0), (2.0, 100.0), (4.0, 900.0)).startswith(
        "set an SLO and search for the highest rate that meets it: `loadgen "
    )
    higher = told((1.0, 300.0), (2.0, 150.0), (4.0, 75.0))
    assert higher == "sweep higher rates: `--request-rate 8,16`"
    assert told((1.0, 300.0), (2.0, 150.0)).startswith("give three levels or more for a knee")


def test_a_quiet_sweep_of_five_levels_takes_ten_lines() -> None:
    points = [swept(level, 300.0) for level in (1.0, 2.0, 4.0, 8.0, 16.0)]
    data = Series.from_dict(together(*points, kind="sweep"))
    assert len(render_series(data, is_brief=True).splitlines()) <= 10
