"""Runs of other seeds are draws of one workload, as those of --num-runs."""

from pathlib import Path

import pytest

from loadgen.analysis.compare.comparison import Comparison, compare
from loadgen.analysis.compare.pair import Conclusion
from loadgen.analysis.compare.side import Side
from loadgen.errors import BadInput
from tests.helpers.compared_runs import FEW, saved


def compared(base: str, new: str, *, anyway: bool = False) -> Comparison:
    return compare([Side.read("A", base), Side.read("B", new)], anyway=anyway)


def side(folder: Path, ttft: float, *seeds: int) -> str:
    folder.mkdir()
    for number, seed in enumerate(seeds):
        settings = FEW.replace(seed=seed)
        saved(folder / f"{folder.name}{number}.json", ttft=ttft + number, settings=settings)
    return str(folder)


def test_runs_of_several_seeds_are_starts_of_a_side(tmp_path: Path) -> None:
    base, new = side(tmp_path / "a", 20, 0, 1, 2), side(tmp_path / "b", 40, 0, 1, 2)
    comparison = compared(base, new)
    row = comparison.candidates[0].row("ttft_mean")
    assert row is not None
    assert row.conclusion is Conclusion.WORSE
    assert comparison.notes == ()


def test_other_seeds_on_each_side_are_noted(tmp_path: Path) -> None:
    base, new = side(tmp_path / "a", 20, 0, 1, 2), side(tmp_path / "b", 40, 3, 4, 5)
    assert compared(base, new).notes == (
        "A and B have different seeds: a difference may be one of their requests",
    )


def test_another_seed_that_starts_repeat_is_refused(tmp_path: Path) -> None:
    base, new = side(tmp_path / "a", 20, 0, 0, 0), side(tmp_path / "b", 40, 1, 1, 1)
    with pytest.raises(BadInput, match="--seed one and another, which no start varies"):
        compared(base, new)
    assert len(compared(base, new, anyway=True).clashes) == 1
