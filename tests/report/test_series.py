"""Several runs together: their table, the result of a search, and the knee."""

from typing import Any

import pytest

from loadgen.report.series import REPEATED
from tests.helpers import run_facts, saved_json


def result(rate: float, *ttft_ms: float, **changes: Any) -> dict[str, Any]:
    """A point of a run at a rate, whose requests had these TTFTs."""
    ran = run_facts.measured([run_facts.steady(index, due=10 * index, ttft=each) for index, each in enumerate(ttft_ms)])
    data = run_facts.result(ran)
    data["loadgen"]["provenance"]["prompts"] = {"sha256": str(rate)}
    return saved_json.point(rate, data, ran, limits="ttft_p99<100ms,e2el_p95<1s", saved=[]) | changes


def swept(level: float, e2el_ms: float) -> dict[str, Any]:
    """A point of which all but the mean E2EL is the same."""
    point = result(level, 20)
    return point | {"latency_ms": point["latency_ms"] | {"e2el_mean": e2el_ms}}


def together(*points: dict[str, Any], kind: str = "search", **found: Any) -> dict[str, Any]:
    data = saved_json.begun(kind, "rate", "ttft_p99<100ms,e2el_p95<1s", "due")
    data["points"] = list(points)
    if found:
        data["found"] = {"level": None, "fails": None, "last": None} | found
    saved_json.conclude(data)
    return data


def test_a_point_is_held_against_the_slo() -> None:
    assert result(1.0, 20, 30)["met"] is True
    missed = result(1.0, 20, 300)
    assert missed["met"] is False
    assert [row["met"] for row in missed["slo"]] == [False, True]
    assert missed["latency_ms"]["ttft_p50"] == pytest.approx(160, rel=0.01)


def test_point_with_failures_misses_slo_and_keeps_latencies() -> None:
    ran = run_facts.measured([run_facts.steady(0), run_facts.failed(1)])
    point = saved_json.point(1.0, run_facts.result(ran), ran, limits="ttft_p99<1s,ttft_p50<1s", saved=[])
    assert [(row["beyond"], row["met"]) for row in point["slo"]] == [(True, False), (False, True)]
    assert point["met"] is False
    assert point["latency_ms"]["ttft_p99"] == pytest.approx(20, rel=1e-3)


def test_a_run_that_is_not_to_be_believed_neither_meets_nor_misses_anything() -> None:
    ran = run_facts.measured([run_facts.steady()])
    data = run_facts.result(ran)
    data["loadgen"]["verdict"] = "INVALID"
    assert saved_json.point(1.0, data, ran, limits="ttft_p99<1s", saved=[])["met"] is None


def test_a_row_for_each_run_in_the_order_of_the_levels() -> None:
    lines = saved_json.render(
        together(result(8.0, 300), result(2.0, 20), result(4.0, 30, met=None, why="too few"))
    ).splitlines()
    head = next(number for number, line in enumerate(lines) if "TTFT p50" in line)
    rows = [line.split() for line in lines[head + 1 : head + 4]]
    assert [(row[0], row[-1]) for row in rows] == [("2", "met"), ("4", "-"), ("8", "MISSED")]
    assert "e2el_p95" in lines[head]  # what has no column of its own
    assert "ttft_p99" not in lines[head]
    assert "  at 4: too few" in lines
    assert len({len(line) for line in lines[head : head + 4]}) == 1
    assert rows[0][4:6] == ["20.00*", "20.00*"]  # one value is few for any percentile
    assert "* few values; the result of the run has the confidence interval" in lines


def test_a_percentile_of_enough_values_has_no_mark() -> None:
    lines = saved_json.render(together(result(2.0, *[20.0] * 130))).splitlines()
    (row,) = (line.split() for line in lines if line.startswith(" ") and line.split()[0] == "2")
    assert row[4:6] == ["20.00", "20.00*"]
    assert row[8] == "40.00"  # e2el_p95 needs 130


def test_all_at_once_is_the_highest_rate() -> None:
    lines = saved_json.render(together(result(float("inf"), 20), result(2.0, 20))).splitlines()
    assert [line.split()[0] for line in lines if line.strip().startswith(("2 ", "inf "))] == ["2", "inf"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            {"end": "edge", "level": 4.0, "fails": 4.125},
            "Highest rate that meets ttft_p99<100ms,e2el_p95<1s: 4 requests/s; 4.125 do not",
        ),
        (
            {"end": "floor", "level": 4.0},
            "At least 4 requests/s meet ttft_p99<100ms,e2el_p95<1s; nothing failed up to 4, and the search ended there",
        ),
        (
            {"end": "none", "fails": 0.5},
            "NO RATE MEETS ttft_p99<100ms,e2el_p95<1s: the lowest that was tried is 0.5 requests/s",
        ),
        (
            {"end": "client", "level": 4.0, "last": 8.0},
            "At 8 requests/s THE CLIENT, NOT THE SERVER, WAS THE LIMIT: at least 4 requests/s meet "
            "ttft_p99<100ms,e2el_p95<1s",
        ),
        (
            {"end": "client", "last": 8.0},
            "At 8 requests/s THE CLIENT, NOT THE SERVER, WAS THE LIMIT: nothing is known of the server",
        ),
        (
            {"end": "early", "level": 4.0},
            "The search ended early; at least 4 requests/s meet ttft_p99<100ms,e2el_p95<1s",
        ),
        ({"end": "early"}, "The search ended early"),
    ],
)
def test_result_of_a_search_is_one_line(found: dict[str, Any], said: str) -> None:
    points = [result(4.0, 20), result(4.125, 200, met=False)]
    assert said in saved_json.render(together(*points, **found)).splitlines()


def test_a_level_of_which_too_few_requests_told_is_not_said_to_miss() -> None:
    points = [result(4.0, 20), result(4.125, 200, met=None, why="too few")]
    said = saved_json.render(together(*points, end="edge", level=4.0, fails=4.125))
    assert "4 requests/s; 4.125 were not shown to" in said


class TestKnee:
    def test_knee_is_where_throughput_by_latency_is_highest(self) -> None:
        """Twice the tokens/s for half as much latency again are worth it; a quarter more for twice the latency not."""
        one = result(1.0, 20.0)
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

    def test_a_sweep_says_it_and_a_search_has_another_answer(self) -> None:
        points = [swept(level, e2el) for level, e2el in ((1.0, 200.0), (2.0, 100.0), (4.0, 900.0))]
        data = together(*points, kind="sweep")
        assert data["knee"] == 2.0
        assert "Knee (highest ratio of tokens/s to mean E2EL): 2 requests/s" in saved_json.render(data)
        assert "Knee" not in saved_json.render(together(*points, end="floor", level=4.0))

    @pytest.mark.parametrize("beyond", [[], [("INVALID", 8.0)]])
    def test_the_last_level_is_none(self, beyond: list[tuple[str, float]]) -> None:
        """Nothing is known of what comes after it."""
        points = [swept(level, 300.0 / level) for level in (1.0, 2.0, 4.0)]
        points += [swept(level, 10.0) | {"verdict": verdict} for verdict, level in beyond]
        data = together(*points, kind="sweep")
        assert data["knee"] is None
        assert "No knee up to 4 requests/s" in saved_json.render(data)


def test_runs_of_the_same_prompts_are_noted() -> None:
    one, other = result(1.0, 20), result(2.0, 20)
    for point, sha in ((one, "a"), (other, "b")):
        point["result"]["loadgen"]["prompts_sha256"] = sha
    assert together(one, other)["notes"] == []
    other["result"]["loadgen"]["prompts_sha256"] = "a"
    assert together(one, other)["notes"] == [REPEATED]


@pytest.mark.parametrize(
    ("met", "said"),
    [
        ((True, True, False), "ttft_p99<100ms,e2el_p95<1s is met at: 1, 2 requests/s"),
        ((False, None, False), "NO LEVEL MEETS ttft_p99<100ms,e2el_p95<1s"),
        ((None, None, None), None),
    ],
)
def test_a_sweep_says_which_levels_met_the_slo(met: tuple[bool | None, ...], said: str | None) -> None:
    points = [result(rate, 20, met=each) for rate, each in zip((1.0, 2.0, 4.0), met, strict=True)]
    lines = [line for line in saved_json.render(together(*points, kind="sweep")).splitlines() if "e2el_p95<1s" in line]
    assert lines == ([said] if said else [])
