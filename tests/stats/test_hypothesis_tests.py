"""Fisher's and McNemar's exact tests against whole numbers; Holm's procedure on p-values and
step by step.
"""

import math
from math import comb

import pytest

from loadgen.stats.hypothesis_tests import (
    StepDown,
    fisher_one_sided_p,
    largest_rejected,
    mcnemar_one_sided_p,
    min_significant_losses,
)


@pytest.mark.parametrize(
    ("failures", "trials", "all_failures", "all_trials"),
    [
        (0, 5, 0, 10),
        (3, 5, 3, 10),
        (2, 5, 3, 10),
        (5, 5, 10, 10),
        (14, 100, 14, 200),
        (62, 100, 112, 200),
        (1, 1, 5, 9),
    ],
)
def test_p_value_is_exact(failures: int, trials: int, all_failures: int, all_trials: int) -> None:
    ways = sum(
        math.comb(trials, k) * math.comb(all_trials - trials, all_failures - k)
        for k in range(failures, min(trials, all_failures) + 1)
    )
    right = ways / math.comb(all_trials, all_failures)
    assert fisher_one_sided_p(failures, trials, all_failures, all_trials) == pytest.approx(
        right, rel=1e-6
    )


def test_p_value_of_many_failures() -> None:
    assert fisher_one_sided_p(50_000, 100_000, 100_000, 200_000) == pytest.approx(0.5, abs=0.01)
    assert fisher_one_sided_p(60_000, 100_000, 100_000, 200_000) < 1e-12


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (1, 0), (5, 0), (5, 3), (8, 8), (3, 9)])
def test_p_value_is_the_tail_of_a_fair_coin(lost: int, won: int) -> None:
    flips = lost + won
    assert mcnemar_one_sided_p(lost, won) == pytest.approx(
        1 - sum(comb(flips, k) for k in range(lost)) / 2**flips
    )


@pytest.mark.parametrize(("alpha", "losses"), [(0.05, 5), (0.01, 7)])
def test_min_significant_losses(alpha: float, losses: int) -> None:
    assert min_significant_losses(alpha) == losses
    assert mcnemar_one_sided_p(losses, 0) <= alpha < mcnemar_one_sided_p(losses - 1, 0)


@pytest.mark.parametrize(
    ("p_values", "largest"),
    [
        ([], None),
        ([0.05], 0.05),
        ([0.06], None),
        ([0.04, 0.012, 0.010, 0.9], 0.012),  # 0.05 / 4, / 3, / 2: 0.04 is above 0.025
        ([0.03, 0.03], None),
        ([0.025, 0.025], 0.025),
        ([0.0126, 0.001, 0.001, 0.001], 0.0126),
        ([0.02, 0.02, 0.02], None),  # the first is above 0.05 / 3, so nothing after it counts
    ],
)
def test_largest_rejected(p_values: list[float], largest: float | None) -> None:
    assert largest_rejected(p_values, 0.05) == largest


def test_a_rejection_raises_the_level_of_the_next() -> None:
    procedure = StepDown(0.05, 4, rejected=1)
    assert procedure.level == pytest.approx(0.05 / 3)
    assert procedure.test(True)
    assert procedure.level == pytest.approx(0.05 / 2)


def test_step_down_stops_at_the_first_acceptance() -> None:
    procedure = StepDown(0.05, 3)
    assert not procedure.test(False)
    assert not procedure.test(True)
    assert procedure.level == pytest.approx(0.05 / 3)
