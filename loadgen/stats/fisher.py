"""Fisher's exact test of a 2x2 table."""

import math


def one_sided_p(
    failures: int,
    trials: int,
    all_failures: int,
    all_trials: int,
) -> float:
    """Return the one-sided p-value of Fisher's exact test: the upper tail of a hypergeometric distribution.

    This is the chance that `failures` or more of `all_failures` failures fall into a group if they fall at random.

    Args:
        failures: In the group.
        trials: In the group.
        all_failures: In the group and outside it.
        all_trials: In the group and outside it.
    """

    def log_ways(n: int, k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    tail = 0.0
    for k in range(max(failures, trials + all_failures - all_trials), min(trials, all_failures) + 1):
        term = math.exp(
            log_ways(trials, k) + log_ways(all_trials - trials, all_failures - k) - log_ways(all_trials, all_failures)
        )
        tail += term
        if term < tail * 1e-9:  # beyond the mode terms only fall
            break
    return min(tail, 1.0)
