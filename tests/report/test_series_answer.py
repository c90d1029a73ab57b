"""The answer of several runs, and what to do next."""

from typing import Any

import pytest

from loadgen.report.result.series import Series
from loadgen.report.series import MIN_FOR_KNEE, TOO_FEW, rows
from loadgen.report.series_answer import answer, slo_text
from loadgen.report.series_next_step import after_series
from loadgen.report.summary_line import Colour
from tests.helpers import run_facts, saved_json
from tests.helpers.saved_results import search
from tests.helpers.series_points import answer_line, enough, result, swept, together


@pytest.mark.parametrize(
    ("found", "said", "bound"),
    [
        (
            {"end": "edge", "level": 4.0, "fails": 4.125},
            "FOUND: 4 req/s is the highest rate that met {} (1 run)",
            "4.125 missed it",
        ),
        (
            {"end": "floor", "level": 4.125},
            "AT LEAST: 4.125 req/s met {}",
            "no higher rate was tried",
        ),
        (
            {"end": "floor", "level": 4.0, "fails": 4.125},
            "AT LEAST: 4 req/s met {}",
            "4.125 missed it, and the search ended before it had found the limit",
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


def test_an_unfinished_search_says_what_the_levels_above_its_answer_showed() -> None:
    judged = {"met": False, "runs": 1, "why": None, "slo": []}
    points = [result(level, 20) for level in (4.0, 8.0, 16.0, 32.0)]
    data = together(*points, end="floor", level=4.0)
    data["levels"] = [
        judged | {"level": 4.0, "met": True},
        judged | {"level": 8.0, "doubted": "requests sent late"},
        judged | {"level": 16.0, "met": None},
        judged | {"level": 32.0, "met": None, "runs": 0, "why": "the client was the limit"},
    ]
    assert answer_line(data).split(" | ")[1] == (
        "no higher rate is known to miss it: 8 missed it in disturbed runs alone, 16 is undecided, "
        "32 shows nothing (the client was the limit)"
    )
    assert after_series(Series.from_dict(data)).startswith(
        'search on: `loadgen search --request-rate 4 --slo "ttft_p99<100ms,e2el_p95<1s"`, with '
    )


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
            '4 --num-runs 3 --slo "ttft_p99<100ms,e2el_p95<1s"`, with the other flags as they '
            "were; if all three runs meet the SLO, keep the load at or below 4 req/s",
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
            "keep the load at or below 2 req/s, or find the highest rate that meets it: `loadgen "
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
