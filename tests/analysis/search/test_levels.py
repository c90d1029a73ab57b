"""Levels: how many requests the runs have.

Whole runs are in tests/slow/statistics/test_search.py.
"""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.analysis.search.algorithm import Run
from loadgen.analysis.search.criteria import RatioSample, RequestShare, separate_criteria
from loadgen.analysis.search.levels import CONCURRENCY, MAX_REQUESTS, RATE, Axis, Levels
from loadgen.analysis.search.search_bounds import SearchBounds
from loadgen.config.settings import RunSettings

SETTINGS = RunSettings(num_prompts=1000)


def along(axis: Axis, slo: str = "ttft_p99<500ms", **options: Any) -> Levels:
    async def measure(*asked: object) -> Any:
        raise AssertionError("nothing is to be measured")

    return Levels(
        measure,
        SETTINGS,
        separate_criteria(slo),
        lambda name: nullcontext(Path(name)),
        name="n",
        axis=axis,
        **options,
    )


@pytest.mark.parametrize("slo", ["ttft_p99<500ms", "ttft_p99.9<500ms"])
@pytest.mark.parametrize("in_flight", [794, 2000, CONCURRENCY.max_level])
def test_two_runs_at_a_concurrency_can_meet_a_percentile(slo: str, in_flight: int) -> None:
    requests = 2 * along(CONCURRENCY, slo).requests_at(in_flight)
    good = np.ones(requests)
    (share,) = separate_criteria(slo)
    assert isinstance(share, RequestShare)
    assert Run([RatioSample(good, good, share.attainment)], in_flight).met()


def test_run_at_a_rate_has_max_requests() -> None:
    assert along(RATE).requests_at(100_000.0) == MAX_REQUESTS


def test_run_has_the_requested_number_of_requests() -> None:
    assert along(RATE, min_requests=MAX_REQUESTS + 1).requests_at(1.0) == MAX_REQUESTS + 1


@pytest.mark.parametrize("in_flight", [4, 32, 794])
def test_run_that_must_decide_alone_can(in_flight: int) -> None:
    good = np.ones(
        along(CONCURRENCY, "error_rate<5%", bounds=SearchBounds(looks=1)).requests_at(in_flight)
    )
    assert Run([RatioSample(good, good, 0.95)], in_flight).met()


def test_runs_have_prompts_of_their_own_unless_asked_otherwise() -> None:
    seeds = [
        along(RATE, bounds=SearchBounds(new_seeds=new))._settings_at(4.0, Path("r")).seed_prompts
        for new in (True, False)
    ]
    assert seeds == [1, 0]


def test_runs_have_a_limit_of_the_first_token() -> None:
    assert along(RATE)._settings_at(4.0, Path("r")).first_token_timeout == 600.0
