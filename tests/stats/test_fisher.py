"""Fisher's exact test against the hypergeometric distribution in whole numbers."""

import math

import pytest

from loadgen.stats.fisher import one_sided_p


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
    assert one_sided_p(failures, trials, all_failures, all_trials) == pytest.approx(right, rel=1e-6)


def test_p_value_of_many_failures() -> None:
    assert one_sided_p(50_000, 100_000, 100_000, 200_000) == pytest.approx(0.5, abs=0.01)
    assert one_sided_p(60_000, 100_000, 100_000, 200_000) < 1e-12
