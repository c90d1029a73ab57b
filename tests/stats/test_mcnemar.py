"""McNemar's exact test against the binomial distribution."""

from math import comb

import pytest

from loadgen.stats.mcnemar import min_significant_losses, one_sided_p


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (1, 0), (5, 0), (5, 3), (8, 8), (3, 9)])
def test_p_value_is_the_tail_of_a_fair_coin(lost: int, won: int) -> None:
    flips = lost + won
    assert one_sided_p(lost, won) == pytest.approx(1 - sum(comb(flips, k) for k in range(lost)) / 2**flips)


@pytest.mark.parametrize(("alpha", "losses"), [(0.05, 5), (0.01, 7)])
def test_min_significant_losses(alpha: float, losses: int) -> None:
    assert min_significant_losses(alpha) == losses
    assert one_sided_p(losses, 0) <= alpha < one_sided_p(losses - 1, 0)
