"""Arms that a study expects to win: how they are named, and a run whose winners are others."""

from typing import Any

import pytest

from loadgen.lab.study.plan.planner import Planner, plan
from loadgen.lab.study.spec.strict_model import AtFault
from loadgen.lab.study.spec.study import Study
from tests.helpers.study_files import planned, step, study

SEQS: dict[str, Any] = {"name": "seqs", "grid": {"max_seqs": [64, 128]}}


def without_winner(asked: Study) -> Planner:
    """The planner of a run whose first stage, unlike its plan, keeps the baseline."""
    planner = Planner(asked)
    planner.noise()
    planner.adopt(0, planner.stage(0).arms, [])
    return planner


@pytest.mark.parametrize("expect", ["max_seqs=64", {"max_seqs": 64}, [{"max_seqs": 64}]])
def test_a_grid_expects_an_arm_by_its_name_or_by_its_values(expect: Any) -> None:
    assert step(SEQS | {"expect": expect}).wins == ("max_seqs=64",)


def test_values_that_a_grid_expects_may_be_in_any_order() -> None:
    grid = {"max_seqs": [64, 128], "max_batched_tokens": [2048, 4096]}
    expect = {"max_batched_tokens": 4096, "max_seqs": 64}
    assert step({"name": "both", "grid": grid, "expect": expect}).wins == (
        "max_seqs=64 max_batched_tokens=4096",
    )


def test_place_of_an_expected_arm_is_written_as_in_the_file() -> None:
    with pytest.raises(AtFault, match=r"^stages.0.expect: unknown arm 'max_seqs=1'"):
        planned(SEQS | {"expect": "max_seqs=1"})
    with pytest.raises(AtFault, match=r"^stages.0.expect.1: unknown arm 'max_seqs=1'"):
        planned(SEQS | {"expect": ["max_seqs=64", "max_seqs=1"]}, keep=2)


def test_a_run_may_have_other_arms_than_its_plan_expects() -> None:
    cached = {
        "name": "cache",
        "choice": {"cached": {"knobs": {"prefix_cache": True}}},
        "expect": "cached",
    }
    asked = study(cached, SEQS | {"where": "(prefix_cache or 0) == 1", "expect": "max_seqs=64"})
    assert plan(asked).steps[2].wins == ("max_seqs=64",)
    assert without_winner(asked).stage(1).wins == ()


def test_a_run_leaves_out_an_arm_that_is_like_another_only_after_its_own_winners() -> None:
    fewer = {"name": "seqs", "choice": {"fewer": {"knobs": {"max_seqs": 64}}}, "expect": "fewer"}
    off = {"prefix_cache": False}
    cache = {
        "name": "cache",
        "choice": {"off": {"knobs": off}, "off, as before": {"knobs": off | {"max_seqs": 128}}},
    }
    asked = study(
        fewer, cache, baseline={"engine": "vllm", "model": "bf16", "knobs": {"max_seqs": 128}}
    )
    assert [arm.name for arm in plan(asked).steps[2].arms] == [
        "seqs/fewer",
        "off",
        "off, as before",
    ]
    found = without_winner(asked).stage(1)
    assert [arm.name for arm in found.arms] == ["baseline", "off"]
    assert found.notes == ("off, as before is served in the same way as off",)
