"""The files beside the summaries: the points of a search or of stages, and why the search ended."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.lab.gpustack import arguments
from loadgen.lab.gpustack.auto_tune import AutoTune
from loadgen.lab.gpustack.job import Job
from loadgen.lab.gpustack.ramp import Ramp, point, write_curve
from loadgen.report.result.series import Found, LoadLevel, Series
from tests.helpers.gpustack_contract import GUIDELLM

JOB = (
    "--target",
    "http://127.0.0.1:8000",
    "--data",
    "prompt_tokens=16,output_tokens=4",
    "--auto-tune",
)


def searched(folder: Path, *flags: str) -> AutoTune:
    job = Job.of(
        arguments.parse([*JOB, *flags, "--output-dir", str(folder), "--outputs", "7.json"])
    )
    assert job.auto_tune is not None
    return job.auto_tune


def series(levels: dict[float, bool | None], end: Any, runs: int = 5) -> Series:
    met = [level for level, verdict in levels.items() if verdict]
    missed = [level for level, verdict in levels.items() if verdict is False]
    return Series(
        kind="search",
        over="rate",
        slo="error_rate<0.05",
        latency_from="sent",
        points=[None] * runs,  # type: ignore[list-item]  # only their number matters
        levels=[
            LoadLevel(level=level, met=verdict, runs=1, why=None, slo=[])
            for level, verdict in levels.items()
        ],
        found=Found(
            level=max(met, default=None), fails=min(missed, default=None), end=end, last=None
        ),
    )


def written(ramp: Ramp, found: Series) -> dict[str, Any]:
    for each in found.levels:
        ramp.add(each.level, GUIDELLM)
    ramp.write(found)
    facts: dict[str, Any] = json.loads(ramp.auto_tune.summary.with_name("7__ramp.json").read_text())
    return facts


@pytest.mark.parametrize(
    ("flags", "beyond", "levels", "end", "reasons"),
    [
        ((), {16.0}, {8.0: True, 16.0: False}, "edge", ("capacity_plateau", "converged")),
        ((), set(), {8.0: True, 16.0: False}, "edge", ("overloaded", "converged")),
        (
            ("--slo-avg-ttft-ms", "9"),
            set(),
            {8.0: True, 16.0: False},
            "edge",
            ("slo_failed", "converged"),
        ),
        (
            ("--slo-avg-ttft-ms", "9"),
            {16.0},
            {8.0: True, 16.0: False},
            "edge",
            ("capacity_plateau", "converged"),
        ),
        (("--slo-avg-ttft-ms", "9"), set(), {4.0: False}, "none", ("slo_failed", "slo_failed")),
        (
            ("--upper-bound", "16"),
            set(),
            {8.0: True, 16.0: True},
            "floor",
            ("upper_bound", "upper_bound"),
        ),
        (
            ("--max-points", "5"),
            set(),
            {8.0: True, 16.0: True},
            "floor",
            ("budget_points", "budget_points"),
        ),
        (
            ("--max-points", "5"),
            {16.0},
            {8.0: True, 16.0: False},
            "floor",
            ("capacity_plateau", "budget_points"),
        ),
        ((), set(), {8.0: True, 16.0: None}, "early", ("point_failed", "point_failed")),
    ],
)
def test_reasons_are_those_that_gpustack_advises_by(
    flags: tuple[str, ...],
    beyond: set[float],
    levels: dict[float, bool | None],
    end: str,
    reasons: tuple[str, str],
    tmp_path: Path,
) -> None:
    ramp = Ramp(searched(tmp_path, *flags), beyond_capacity=beyond)
    facts = written(ramp, series(levels, end))
    assert (facts["bracket_reason"], facts["stop_reason"]) == reasons
    assert facts["stopped_at"] == max(levels)


def test_search_out_of_time_says_so_and_keeps_what_it_knows(tmp_path: Path) -> None:
    ramp = Ramp(searched(tmp_path, "--slo-avg-ttft-ms", "9"), out_of_time=True)
    facts = written(ramp, series({8.0: True, 16.0: False}, "early"))
    assert (facts["bracket_reason"], facts["stop_reason"]) == ("slo_failed", "budget_seconds")
    assert facts["slo_bracket"] == [8.0, 16.0]


def test_a_level_without_a_verdict_is_no_boundary(tmp_path: Path) -> None:
    facts = written(
        Ramp(searched(tmp_path, "--slo-avg-ttft-ms", "9")), series({8.0: True, 16.0: None}, "early")
    )
    assert facts["slo_bracket"] == [8.0, None]


def test_limits_are_named_as_benchmark_runners_flags(tmp_path: Path) -> None:
    flags = ("--sla-avg-ttft-ms", "500", "--sla-p99-tpot-ms", "50")
    facts = written(Ramp(searched(tmp_path, *flags)), series({4.0: True}, "floor"))
    assert facts["slo_thresholds"] == {"slo_avg_ttft_ms": 500, "slo_p99_itl_ms": 50}
    assert facts["target"] == "slo"


def test_a_load_that_is_run_again_keeps_its_number(tmp_path: Path) -> None:
    tuned = searched(tmp_path)
    ramp = Ramp(tuned)
    paths = [ramp.add(load, GUIDELLM) for load in (4.0, 8.0, 8.0, 16.0)]
    assert paths == [tuned.point(0), tuned.point(1), tuned.point(1), tuned.point(2)]
    assert [one["index"] for one in ramp.points.values()] == [0, 1, 2]


def test_point_has_milliseconds_and_a_share() -> None:
    metrics = GUIDELLM["benchmarks"][0]["metrics"]
    found = point(GUIDELLM, 4.0, 2)
    assert (found["knob"], found["index"]) == (4.0, 2)
    assert found["latency_ms"] == pytest.approx(
        1e3 * metrics["request_latency"]["successful"]["mean"]
    )
    assert (
        found["ttft_p99_ms"]
        == metrics["time_to_first_token_ms"]["successful"]["percentiles"]["p99"]
    )
    assert found["success"] == 1


def test_curve_of_stages_recommends_nothing(tmp_path: Path) -> None:
    write_curve(tmp_path / "7.json", "rate", [point(GUIDELLM, 1.0, 0)], 3.0)
    facts = json.loads((tmp_path / "7__curve.json").read_text())
    assert (facts["stop_reason"], facts["points_measured"], facts["slo_bracket"]) == (
        "stages_completed",
        1,
        None,
    )
