"""McNemar's exact test of paired yes/no outcomes (Psychometrika 12, 1947)."""

import math


def one_sided_p(
    lost: int,
    won: int,
) -> float:
    """Return the one-sided p-value of McNemar's exact test.

    This is the chance of `lost` or more losses among the pairs that differ if a loss is as likely as a win.

    Args:
        lost: Pairs of which only the first is a success.
        won: Pairs of which only the second is a success.
    """
    differing = lost + won
    return sum(math.comb(differing, count) for count in range(lost, differing + 1)) / (1 << differing)


def min_significant_losses(alpha: float) -> int:
    """Return the smallest number of lost pairs that is significant at level `alpha` if none is won."""
    return math.ceil(-math.log2(alpha))
