"""Bounds of a search, by simulation: how often a level is called met that is exactly at its
limit.
"""

import numpy as np
import pytest

from loadgen.analysis.search.algorithm import Run, SearchRange, find_highest_level
from loadgen.analysis.search.criteria import RatioSample
from loadgen.util.arrays import Floats

LEVELS = 200
SHARES = {"p50": 0.5, "p80": 0.8, "p90": 0.9, "p95": 0.95}
MEAN_MS = 10.0


def shown(kind: str, fates: Floats, each: int, count: int) -> RatioSample:
    """What requests show of which `each` in a row share a fate, drawn from 0 to 1."""
    if kind == "mean":
        return RatioSample(
            np.repeat(-MEAN_MS * np.log(fates), each)[:count], np.ones(count), MEAN_MS, is_mean=True
        )
    good = np.repeat(fates < SHARES[kind], each)[:count]
    return RatioSample(good.astype(float), np.ones(count), SHARES[kind])


async def met(kind: str, *, count: int, in_flight: int, each: int, seed: int) -> bool:
    """Whether a search meets a level that is exactly at the limit, in runs of so many requests."""
    rng = np.random.default_rng(seed)

    async def measure(level: float) -> Run:
        begin = rng.integers(each)
        run = shown(kind, rng.random(count // each + 2), each, count + begin)
        return Run(
            [
                RatioSample(
                    run.numerator[begin:], run.denominator[begin:], run.threshold, run.is_mean
                )
            ],
            in_flight,
        )

    return bool(
        (await find_highest_level(measure, 1.0, SearchRange(min_level=1.0, max_level=1.0))).level
    )


@pytest.mark.parametrize("kind", [*SHARES, "mean"])
@pytest.mark.parametrize(
    ("count", "in_flight", "each"),
    [(501, 50, 50), (1005, 100, 100), (1000, 50, 50), (3000, 50, 50), (1000, 1, 1), (1000, 50, 1)],
)
async def test_a_level_at_its_limit_is_met_as_seldom_as_promised(
    kind: str, count: int, in_flight: int, each: int
) -> None:
    """In 5 % of searches, plus two standard errors of this simulation; of requests that are in
    flight together too.
    """
    found = [
        await met(kind, count=count, in_flight=in_flight, each=each, seed=seed)
        for seed in range(LEVELS)
    ]
    promised = 0.05
    assert np.mean(found) <= promised + 2 * np.sqrt(promised * (1 - promised) / LEVELS)


async def test_a_level_well_within_its_limit_is_met() -> None:
    """Nine in ten must be good, and nineteen in twenty are."""
    rng = np.random.default_rng(1)

    async def measure(level: float) -> Run:
        return Run([RatioSample((rng.random(1000) < 0.95).astype(float), np.ones(1000), 0.9)], 20.0)

    assert (
        await find_highest_level(measure, 1.0, SearchRange(min_level=1.0, max_level=1.0))
    ).level == 1.0
