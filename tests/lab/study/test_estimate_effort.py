"""The effort of a study's search for the highest rate."""

import pytest

from loadgen.lab.study.plan.estimate import Effort


@pytest.mark.parametrize(
    ("least_effect", "resolution", "runs"),
    [
        (0.0, 0.01, (9, 22)),
        (0.01, 0.01, (9, 22)),
        (0.02, 0.02, (8, 20)),
        (0.05, 0.05, (6, 16)),
        (0.2, 0.05, (6, 16)),
    ],
)
def test_resolution_follows_the_least_effect(
    least_effect: float, resolution: float, runs: tuple[int, int]
) -> None:
    effort = Effort.for_effect(least_effect)
    assert effort.resolution == resolution
    assert (effort.min_runs, effort.max_runs) == runs
    gap = 2.0
    for _ in range(effort.halvings):
        gap **= 0.5
    assert gap <= 1 + resolution < gap**2
