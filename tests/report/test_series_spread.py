"""The spread of repeated runs: mean, standard deviation and range of their numbers."""

from typing import Any

import pytest

from loadgen.document import terminal_writer
from loadgen.report.result.series import Series
from loadgen.report.run_page.series import spread
from tests.helpers import run_facts, saved_json


def point(level: float, ttft_ms: float) -> dict[str, Any]:
    ran = run_facts.measured(
        [run_facts.steady(index, due=100 * index, ttft=ttft_ms) for index in range(3)]
    )
    return saved_json.point(level, run_facts.result(ran), ran, limits=None, saved=[])


def shown(*points: dict[str, Any], load: str | None = "4 requests in flight") -> list[str]:
    data = saved_json.begun("sweep", "concurrency", None, "due") | {
        "points": list(points),
        "load": load,
    }
    return list(terminal_writer.lines(list(spread(Series.from_dict(data))), 100))


def test_repeated_runs_have_their_mean_deviation_and_range() -> None:
    head, *lines, last = shown(point(4, 20), point(4, 30), point(4, 40))
    assert head.startswith("3 runs of one load, 4 requests in flight ")
    assert head.split()[-4:] == ["mean", "std", "min", "max"]
    rows = {line[:13].strip(): line[13:].split() for line in lines}
    assert [float(cell) for cell in rows["TTFT p50, ms"]] == pytest.approx(
        [30, 10, 20, 40], rel=0.01
    )
    assert [float(cell) for cell in rows["TPOT p99, ms"]] == pytest.approx([10, 0, 10, 10], abs=0.1)
    assert last.startswith("req/s varies by ")


def test_runs_at_several_levels_and_single_runs_have_no_spread() -> None:
    assert shown(point(4, 20), point(8, 30), load=None) == shown(point(4, 20)) == []
