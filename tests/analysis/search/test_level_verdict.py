"""A level judged by all its runs: the bounds of its values decide as the search does."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from loadgen.analysis.search.algorithm import Run
from loadgen.analysis.search.criteria import separate_criteria
from loadgen.analysis.search.levels import LevelRun
from loadgen.analysis.search.load_search import judge_level, outcome_text
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.core.record import Record
from loadgen.report.result.series import LoadLevel
from tests.helpers import run_facts, saved_json

SETTINGS = RunSettings(num_prompts=400)


def records(seed: int, scale: float, failed: int = 0) -> list[Record]:
    """Four hundred requests with a TTFT of 5 ms, and 20 ms by a scale, exponential; some fail,
    in any order.
    """
    draw = np.random.default_rng(seed)
    fates = draw.permutation([*(scale * draw.exponential(20.0, 400 - failed)), *([0.0] * failed)])
    return [
        run_facts.steady(number, due=10 * number, ttft=5 + ttft)
        if ttft
        else run_facts.failed(number)
        for number, ttft in enumerate(fates)
    ]


def point(limits: str, requests: Sequence[Record], **changes: Any) -> LevelRun:
    snapshot = run_facts.measured(requests)
    result = saved_json.with_snapshot(run_facts.result(snapshot), snapshot)
    why = changes.pop("why", None)
    samples = [criterion.sample(requests, SETTINGS) for criterion in separate_criteria(limits)]
    return LevelRun(4.0, result, Run(samples, 1.0, **changes), why)


def judged(limits: str, *points: LevelRun) -> Any:
    return judge_level(points, slo.required_limits(limits), "due")


@pytest.mark.parametrize("statistic", ["p50", "p90", "mean"])
@pytest.mark.parametrize("scale", [0.5, 0.9, 1.0, 1.1, 3.0])
def test_bounds_decide_as_the_search_does(statistic: str, scale: float) -> None:
    limits = f"ttft_{statistic}<{ {'p50': 19, 'p90': 51, 'mean': 25}[statistic] }ms"
    one = point(limits, records(1, scale))
    level = judged(limits, one)
    limit, threshold = level.slo[0], slo.parse(limits)[0].threshold
    assert limit.low < limit.value < limit.high
    assert level.met is one.run.met()
    assert limit.met is (
        True if limit.high < threshold else False if limit.low > threshold else None
    )


def test_runs_at_a_level_are_judged_together() -> None:
    limits = "ttft_p90<51ms"
    alone = point(limits, records(3, 0.88))
    together = judged(
        limits, alone, point(limits, records(4, 0.88)), point(limits, records(5, 0.88))
    )
    assert (judged(limits, alone).met, together.met, together.runs) == (None, True, 3)
    assert together.slo[0].high < judged(limits, alone).slo[0].high


def test_value_among_failed_requests_is_unknown() -> None:
    limits = "ttft_p90<51ms,error_rate<20%"
    latency, errors = judged(limits, point(limits, records(1, 0.1, failed=60))).slo
    assert (latency.value, latency.low, latency.high, latency.met) == (None, None, None, False)
    assert errors.value == pytest.approx(0.15)
    assert 0.1 < errors.low < 0.15 < errors.high < 0.21


def test_too_few_requests_have_no_upper_bound() -> None:
    level = judged("ttft_p99<500ms", point("ttft_p99<500ms", records(1, 1.0)[:60]))
    assert level.met is None
    assert level.slo[0].low is not None
    assert level.slo[0].high is None


def test_run_that_piled_up_misses_whatever_its_bounds_are() -> None:
    level = judged(
        "ttft_p90<51ms",
        point("ttft_p90<51ms", records(1, 0.1), failed=True, why="requests piled up"),
    )
    assert (level.met, level.why, level.slo[0].met) == (False, "requests piled up", True)


def test_inconclusive_runs_do_not_count() -> None:
    short = point("ttft_p90<51ms", records(1, 9.0), inconclusive="too short", why="too short")
    level = judged("ttft_p90<51ms", short)
    assert (level.met, level.why, level.runs, level.slo[0].high) == (None, "too short", 0, None)
    both = judged("ttft_p90<51ms", short, point("ttft_p90<51ms", records(2, 0.1)))
    assert (both.met, both.why, both.runs) == (True, None, 1)


@pytest.mark.parametrize("second", ["met", "missed"])
def test_a_disturbed_miss_counts_only_where_nothing_else_is_known(second: str) -> None:
    limits = "ttft_p90<51ms"
    disturbed = point(limits, records(1, 9.0), disturbed="requests sent late")
    alone = judged(limits, disturbed)
    assert (alone.met, alone.doubted, alone.runs) == (False, "requests sent late", 1)
    sound = point(limits, records(2, 0.1 if second == "met" else 9.0))
    both = judged(limits, disturbed, sound)
    assert (both.met, both.doubted, both.runs) == (second == "met", None, 1)
    assert both.slo == judged(limits, sound).slo


@pytest.mark.parametrize(
    ("level", "met", "why", "said"),
    [
        ({"met": True}, True, None, "met"),
        ({"met": False, "why": "requests piled up"}, False, "requests piled up",
         "missed (requests piled up)"),
        ({"met": None, "runs": 2}, True, None, "undecided, by 2 runs together"),
        ({"met": True, "runs": 2}, None, "too few requests", "met, by 2 runs together"),
        ({"met": False, "doubted": "lag"}, False, None, "missed, disturbed (lag)"),
    ],
)  # fmt: skip
def test_the_log_says_of_a_level_what_the_table_does(
    level: dict[str, Any], met: bool | None, why: str | None, said: str
) -> None:
    whole = LoadLevel(**{"level": 4.0, "runs": 1, "why": None, "slo": []} | level)
    assert outcome_text(whole, met, why) == said
