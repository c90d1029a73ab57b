"""The load that GPUStack recommends after a search is the capacity of the server, and never one
that failed.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loadgen.engines.sim.capacity import capacity_per_s
from loadgen.engines.sim.settings import SimSettings
from tests.helpers.command_line import TOKENIZER, environment, loadgen, served
from tests.qa.gpustack.gpustack_code import GPUStack

PROMPT, ANSWER = 16, 16
CLOSE = 0.05
SEARCH = {
    "auto_tune": True,
    "dataset_name": "Random",
    "dataset_input_tokens": PROMPT,
    "dataset_output_tokens": ANSWER,
    "upper_bound": 8192,
    "max_points": 18,
    "max_total_seconds": 3000,
}
TEMPLATE_TOKENS = 23  # that the simulator's tokenizer counts beside the text


def searched(
    gpustack: GPUStack, columns: dict[str, Any], target: str, folder: Path
) -> dict[str, Any]:
    places = {
        "target": target,
        "processor": TOKENIZER,
        "folder": folder,
        "progress": "http://127.0.0.1:1",
    }
    done = loadgen("benchmark-runner", *gpustack.command_line(columns, **places), timeout_s=3600)
    assert done.returncode == 0, done.stderr[-3000:]
    return gpustack.read(folder, columns)


@contextmanager
def limited(limit: int) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.helpers.limited_server", str(limit)]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


def no_failed_point_has_a_load(found: dict[str, Any]) -> None:
    """What GPUStack recommends it chooses among the points with a load, by their tokens per
    second.
    """
    rates = [point["rate"] for point in found["points"] if point["rate"] is not None]
    assert len(rates) == len(set(rates))
    for point in found["points"]:
        share = point["request_successful"] / point["request_total"]
        assert share >= 0.95 or point["rate"] is None


def test_rate_is_the_capacity(gpustack: GPUStack, tmp_path: Path) -> None:
    settings = SimSettings.of(max_num_seqs=8)
    capacity = capacity_per_s(settings, PROMPT + TEMPLATE_TOKENS, ANSWER)
    columns = SEARCH | {"load_type": "fixed_rate", "lower_bound": 16}
    with served("--max-num-seqs", "8") as (url, _):
        found = searched(gpustack, columns, url, tmp_path)
    assert found["best"]["recommended_rate"] == pytest.approx(capacity, rel=CLOSE)
    assert found["validity"]["bracket_reason"] == "capacity_plateau"
    assert found["validity"]["sufficient"]
    assert found["metrics"]["requests_per_second_mean"] == pytest.approx(
        found["best"]["recommended_rate"], rel=0.03
    )
    no_failed_point_has_a_load(found)


def test_requests_in_flight_are_those_that_still_meet_the_limit(
    gpustack: GPUStack, tmp_path: Path
) -> None:
    """A step takes 20 ms, and 1.25 ms for each sequence that decodes: 7 of 8 steps of each.

    In step with each other, 22 have 47.5 ms and 23 have 48.75 ms. In all phases equally often, 25
    have 47.3 ms and 26 have 48.4 ms. A burst begins in step, and drifts apart.
    """
    columns = SEARCH | {"load_type": "concurrency", "lower_bound": 4, "dataset_output_tokens": 8}
    with served("--step-base-ms", "20", "--decode-us-per-seq", "1250") as (url, _):
        found = searched(
            gpustack, columns | {"slo_avg_ttft_ms": 500, "slo_avg_tpot_ms": 47.9}, url, tmp_path
        )
    assert 22 <= found["best"]["slo_met_rate"] <= 25
    assert found["best"]["recommended_rate"] == found["best"]["slo_met_rate"]
    assert found["validity"]["slo_boundary_located"]
    assert found["validity"]["bracket_reason"] == "slo_failed"
    assert found["metrics"]["inter_token_latency_mean"] <= 47.9
    no_failed_point_has_a_load(found)


def test_requests_in_flight_beyond_the_capacity_bring_no_more(
    gpustack: GPUStack, tmp_path: Path
) -> None:
    settings = SimSettings.of(max_num_seqs=8, step_base_ms=20.0)
    capacity = capacity_per_s(settings, PROMPT + TEMPLATE_TOKENS, ANSWER)
    columns = SEARCH | {"load_type": "concurrency", "lower_bound": 2}
    with served("--max-num-seqs", "8", "--step-base-ms", "20") as (url, _):
        found = searched(gpustack, columns, url, tmp_path)
    (point,) = (one for one in found["points"] if one["rate"] == found["best"]["recommended_rate"])
    assert point["output_tokens_per_second_mean"] == pytest.approx(capacity * ANSWER, rel=CLOSE)
    assert found["best"]["recommended_rate"] <= 16
    no_failed_point_has_a_load(found)


def test_load_at_which_requests_fail_is_never_recommended(
    gpustack: GPUStack, tmp_path: Path
) -> None:
    """From 13 in flight on requests are refused, and the 12 others bring as many tokens as ever."""
    columns = SEARCH | {"load_type": "concurrency", "lower_bound": 1, "dataset_output_tokens": 8}
    with limited(12) as url:
        found = searched(gpustack, columns, url, tmp_path)
    failed = [
        point
        for point in found["points"]
        if point["request_errored"] > 0.05 * point["request_total"]
    ]
    (best,) = (
        point for point in found["points"] if point["rate"] == found["best"]["recommended_rate"]
    )
    assert failed
    assert best["rate"] == 12
    assert best["request_errored"] == 0
    assert found["metrics"]["request_errored"] == 0
    no_failed_point_has_a_load(found)


def test_server_that_never_meets_a_limit_has_no_recommended_load(
    gpustack: GPUStack, tmp_path: Path
) -> None:
    columns = SEARCH | {"load_type": "concurrency", "lower_bound": 2, "slo_p95_ttft_ms": 1}
    with served() as (url, _):
        found = searched(gpustack, columns, url, tmp_path)
    assert "recommended_rate" not in found["best"]
    assert [warning["code"] for warning in found["validity"]["warnings"]] == ["slo_never_met"]


def test_budgets_are_kept_and_told(gpustack: GPUStack, tmp_path: Path) -> None:
    columns = SEARCH | {"load_type": "concurrency", "lower_bound": 2}
    with served() as (url, _):
        by_points = searched(gpustack, columns | {"max_points": 2}, url, tmp_path / "points")
        by_seconds = searched(
            gpustack, columns | {"max_total_seconds": 60}, url, tmp_path / "seconds"
        )
    assert by_points["validity"]["stop_reason"] == "budget_points"
    assert len(by_points["points"]) == 2
    assert by_seconds["validity"]["stop_reason"] == "budget_seconds"
    assert by_seconds["ramp"]["elapsed_seconds"] < 75
    for found in (by_points, by_seconds):
        assert {warning["code"] for warning in found["validity"]["warnings"]} == {
            "budget_exhausted"
        }
        no_failed_point_has_a_load(found)
