"""Simulated stages: how often arms without the least effect, and arms with it, are adopted.

The decisions are those of `loadgen.stats.group_sequential.compare`, which looks after each block, as a study does.
The size of the noise matters only beside an effect, so that one is enough.
"""

import numpy as np
import pytest

from loadgen.stats.group_sequential import Comparison, Decision, Plan, compare, detectable_effect
from loadgen.stats.variance import Noise

STAGES = 10_000
FEWER = 2_500  # where the share is far from its bound
SIGMA = 0.012
PLAN = Plan()


def stage(generator: np.random.Generator, effects: list[float]) -> dict[str, Comparison]:
    """One stage, decided."""
    names = ["base", *map(str, range(len(effects)))]
    noise = generator.normal(scale=SIGMA, size=(len(names), PLAN.last)) + generator.normal(scale=0.02, size=PLAN.last)
    achieved = (1 + np.array([0.0, *effects]))[:, None] * np.exp(noise)
    return compare(dict(zip(names, achieved.tolist(), strict=True)), "base", PLAN)


def share(effects: list[float], stages: int = STAGES) -> float:
    """Of stages that adopt any arm."""
    generator = np.random.default_rng([len(effects), int(1e6 * effects[0])])
    decided = (stage(generator, effects).values() for _ in range(stages))
    return sum(any(one.decision is Decision.BETTER for one in stage) for stage in decided) / stages


@pytest.mark.parametrize("arms", [1, 3, 6])
def test_arms_that_are_better_by_just_the_least_effect_are_seldom_adopted(arms: int) -> None:
    assert share([PLAN.least_effect] * arms) <= 0.06


@pytest.mark.parametrize("arms", [1, 3, 6])
@pytest.mark.parametrize(("effect", "power"), [(0.05, 0.95), (0.03, 0.60)])
def test_an_arm_that_is_better_is_found(arms: int, effect: float, power: float) -> None:
    assert share([effect, *[0.0] * (arms - 1)], FEWER) >= power


@pytest.mark.parametrize("arms", [1, 6])
def test_the_least_effect_that_is_said_to_be_seen_is_seen(arms: int) -> None:
    effect = detectable_effect(Noise(SIGMA, 6), arms, PLAN)
    assert share([effect, *[0.0] * (arms - 1)]) >= 0.8 - 0.03
