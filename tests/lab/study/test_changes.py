"""A study may grow in its store: what was measured stays, what is added is measured after it."""

from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import BadInput
from loadgen.lab.study.execute.changes import merged_stages
from tests.helpers.study_files import study

STORE = Path("a.store")
OFF = {"knobs": {"prefix_cache": False}}
CACHE = {"name": "cache", "choice": {"off": OFF}}
SEQS = {"name": "seqs", "grid": {"max_seqs": [64, 128]}}
FP8 = {"name": "fp8", "from": "cache/off", "choice": {"fp8": {"model": "fp8"}}}
LESS = {"knobs": {"max_seqs": 8}}


def stages(*of: dict[str, Any]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = study(*of).as_json()["stages"]
    return made


def merged(before: Any, now: Any, *measured: str) -> list[dict[str, Any]]:
    return merged_stages(stages(*before), stages(*now), set(measured), STORE)


def arms(of: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {stage["name"]: list(stage.get("choice", stage.get("grid"))) for stage in of}


def refusal(before: Any, now: Any, *measured: str) -> str:
    with pytest.raises(BadInput) as refused:
        merged(before, now, *measured)
    return str(refused.value)


def test_a_stage_that_is_added_follows_those_that_were_measured() -> None:
    made = merged([CACHE], [SEQS, CACHE], "noise", "cache", "confirmation")
    assert [stage["name"] for stage in made] == ["cache", "seqs"]


def test_arms_that_are_added_to_a_measured_stage_form_a_stage_of_their_own() -> None:
    more = {"name": "cache", "choice": {"off": OFF, "less": LESS}}
    made = merged([CACHE, SEQS], [more, SEQS], "cache", "seqs", "confirmation")
    assert arms(made) == {"cache": ["off"], "seqs": ["max_seqs"], "cache (added)": ["less"]}


def test_arms_are_added_once_and_then_again() -> None:
    first = {"name": "cache", "choice": {"off": OFF, "less": LESS}}
    second = {"name": "cache", "choice": {**first["choice"], "least": {"knobs": {"max_seqs": 4}}}}
    measured = {"cache", "cache (added)", "confirmation"}
    once = merged_stages(stages(CACHE), stages(first), measured, STORE)
    assert merged_stages(once, stages(first), measured, STORE) == once
    twice = merged_stages(once, stages(second), measured, STORE)
    assert arms(twice)["cache (added 2)"] == ["least"]


def test_a_later_stage_finds_an_added_arm_where_it_is_measured() -> None:
    more = {"name": "cache", "choice": {"off": OFF, "less": LESS}}
    made = merged([CACHE], [more, FP8 | {"from": "cache/less"}], "cache", "confirmation")
    assert [stage["from"] for stage in made] == ["incumbent", "incumbent", "cache (added)/less"]


def test_stages_that_have_not_begun_may_change() -> None:
    more = SEQS | {"grid": {"max_seqs": [64, 128, 256]}}
    made = merged([CACHE, SEQS], [CACHE, more], "noise", "cache")
    assert made[1]["grid"] == {"max_seqs": [64, 128, 256]}


def test_a_changed_arm_is_refused_in_a_line() -> None:
    other = {"name": "cache", "choice": {"off": {"knobs": {"prefix_cache": True}}}}
    assert refusal([CACHE], [other], "cache") == (
        "stages.0.choice.off.knobs.prefix_cache: is true, but was false when a.store was begun; "
        "undo the change, or begin another store with --store"
    )


def test_a_missing_arm_and_a_missing_stage_are_refused() -> None:
    renamed = {"name": "cache", "choice": {"no cache": OFF}}
    assert refusal([CACHE], [renamed], "cache") == (
        "stages.0.choice.off: is nothing, but was {knobs: {prefix_cache: false}} when a.store "
        "was begun; undo the change, or begin another store with --store"
    )
    assert refusal([CACHE, SEQS], [SEQS], "cache") == (
        "stages: cache is missing, but a.store has results of it; put it back, or begin another "
        "store with --store"
    )


def test_new_values_of_a_measured_grid_belong_into_a_stage_of_their_own() -> None:
    more = SEQS | {"grid": {"max_seqs": [64, 128, 256]}}
    assert refusal([SEQS], [more], "seqs") == (
        "stages.0.grid.max_seqs: is [64, 128, 256], but was [64, 128] when a.store was begun; "
        "undo the change and try the new values in a stage of their own, or begin another store "
        "with --store"
    )


def test_a_long_value_is_shortened() -> None:
    long = {"name": "seqs", "grid": {"max_seqs": list(range(1, 100))}}
    problem = refusal([SEQS], [long], "seqs").partition(", but")[0]
    assert problem.startswith("stages.0.grid.max_seqs: is [1, 2, 3,")
    assert problem.endswith(" ...")
    assert len(problem) < 110


def test_an_arm_that_is_called_as_a_free_part_is_compared_as_any_other() -> None:
    first, now = (
        {"name": "s", "choice": {"expect": {"knobs": {"max_seqs": most}}}} for most in (64, 128)
    )
    said = refusal([first], [now], "s")
    assert said.startswith("stages.0.choice.expect.knobs.max_seqs: is 128, but was 64")
