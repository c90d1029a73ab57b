"""Comparison by a program: sides from results and paths, conditions, and errors by the names of
arguments.
"""

from pathlib import Path
from typing import Any

import pytest

import loadgen
from tests.helpers.compared_runs import result, saved, starts


def side(ttft: float, *days: int) -> list[loadgen.SavedResult]:
    return [
        loadgen.SavedResult.from_dict(result(f"202611{day}-100000", ttft=ttft + day / 100))
        for day in days
    ]


def test_results_in_memory_are_compared_start_by_start() -> None:
    found = loadgen.compare(side(20.0, 10, 11, 12), side(40.0, 13, 14, 15), names=("old", "new"))
    row = found.candidates[0].row("ttft_p50")
    assert row is not None
    assert row.change is not None
    assert row.change > 0.9
    assert row.conclusion == "worse"
    assert str(found).startswith('Comparison of "new" (a result of new) with "old" ')
    assert repr(found) == "<JudgedComparison of new with old>"


def test_paths_name_the_sides_and_conditions_are_judged(tmp_path: Path) -> None:
    base, new = (
        starts(tmp_path / "base", 20.0, 20.1, 20.2),
        starts(tmp_path / "new", 40.0, 40.1, 40.2),
    )
    found = loadgen.compare(Path(base), new, fail_if=["ttft_p50>+5%", "ttft_p50<-5%"])
    assert [side.name for side in found.sides] == ["base", "new"]
    assert [each.failed for each in found.judgements] == [True, False]
    assert [each["failed"] for each in found.to_dict()["conditions"]] == [True, False]


def test_errors_name_arguments(tmp_path: Path) -> None:
    one, other = saved(tmp_path / "a.json"), side(40.0, 13)
    for arguments, field in (({"fail_if": ["ttft"]}, "fail_if"), ({"names": ["a"]}, "names")):
        with pytest.raises(loadgen.BadInput) as caught:
            loadgen.compare(one, other, **arguments)  # type: ignore[arg-type]
        assert caught.value.field == field
    for nothing in ((), ([],)):
        with pytest.raises(loadgen.BadInput):
            loadgen.compare(one, *nothing)


@pytest.mark.parametrize(
    ("side", "kind"), [(None, "NoneType"), (3, "int"), ([None], "NoneType"), ({}, "dict")]
)
def test_side_of_another_type_is_refused_by_its_argument(side: Any, kind: str) -> None:
    with pytest.raises(loadgen.BadInput, match=kind) as caught:
        loadgen.compare(side, "new.json")
    assert caught.value.field == "baseline"
    with pytest.raises(loadgen.BadInput, match=kind) as caught:
        loadgen.compare("base.json", side)
    assert caught.value.field == "candidates"


@pytest.mark.parametrize("argument", ["names", "fail_if", "noise"])
def test_argument_of_another_type_is_refused(argument: str) -> None:
    with pytest.raises(loadgen.BadInput) as caught:
        loadgen.compare("base.json", "new.json", **{argument: 3})  # type: ignore[arg-type]
    assert caught.value.field == argument
