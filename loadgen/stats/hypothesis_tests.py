"""Tests of hypotheses by counting, and several of them at one family-wise error rate.

Fisher's exact test of a 2x2 table; McNemar's exact test of paired yes/no outcomes (Psychometrika
12, 1947); Holm's step-down procedure (Scand. J. Stat. 6, 1979).
"""

import math
from collections.abc import Iterable


def fisher_one_sided_p(failures: int, trials: int, all_failures: int, all_trials: int) -> float:
    """Return the one-sided p-value of Fisher's exact test: the upper tail of a hypergeometric
    distribution.

    This is the chance that `failures` or more of `all_failures` failures fall into a group if they
    fall at random.

    Args:
        failures: In the group.
        trials: In the group.
        all_failures: In the group and outside it.
        all_trials: In the group and outside it.
    """

    def log_ways(n: int, k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    tail = 0.0
    for k in range(
        max(failures, trials + all_failures - all_trials), min(trials, all_failures) + 1
    ):
        term = math.exp(
            log_ways(trials, k)
            + log_ways(all_trials - trials, all_failures - k)
            - log_ways(all_trials, all_failures)
        )
        tail += term
        if term < tail * 1e-9:  # beyond the mode terms only fall
            break
    return min(tail, 1.0)


def mcnemar_one_sided_p(lost: int, won: int) -> float:
    """Return the one-sided p-value of McNemar's exact test.

    This is the chance of `lost` or more losses among the pairs that differ if a loss is as likely
    as a win.

    Args:
        lost: Pairs of which only the first is a success.
        won: Pairs of which only the second is a success.
    """
    differing = lost + won
    return sum(math.comb(differing, count) for count in range(lost, differing + 1)) / (
        1 << differing
    )


def min_significant_losses(alpha: float) -> int:
    """Return the smallest number of lost pairs that is significant at level `alpha` if none is
    won.
    """
    return math.ceil(-math.log2(alpha))


class StepDown:
    """Tests hypotheses one after another, in order of decreasing evidence.

    Args:
        alpha: Family-wise error rate.
        count: Number of hypotheses in the family.
        rejected: How many of them were rejected before; they pass their share on to the others.
    """

    def __init__(self, alpha: float, count: int, rejected: int = 0) -> None:
        self._alpha = alpha
        self._count = count
        self._rejected = rejected
        self._stopped = False

    @property
    def level(self) -> float:
        """Significance level at which the next hypothesis is tested.

        Some hypothesis must be left.
        """
        return self._alpha / (self._count - self._rejected)

    def test(self, significant: bool) -> bool:
        """Test the next hypothesis: it is rejected unless one before it was not.

        Args:
            significant: Whether it is significant at `level`.
        """
        if not significant:
            self._stopped = True
        elif not self._stopped:
            self._rejected += 1
        return not self._stopped


def largest_rejected(p_values: Iterable[float], alpha: float) -> float | None:
    """Return the largest p-value whose hypothesis is rejected at family-wise error rate `alpha`;
    None if none is.

    Args:
        p_values: One of each hypothesis, in any order.
        alpha: Family-wise error rate.
    """
    ordered = sorted(p_values)
    procedure = StepDown(alpha, len(ordered))
    largest = None
    for p in ordered:
        if not procedure.test(p <= procedure.level):
            break
        largest = p
    return largest
