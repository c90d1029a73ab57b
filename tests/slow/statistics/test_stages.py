"""Simulated stages: how often arms without the least effect, and arms with it, are adopted."""

import math

import numpy as np
import pytest

from loadgen.stats.group_sequential import NOISE_CONFIDENCE, Decision, Plan, compare, detectable_effect
from loadgen.stats.variance import Noise
from tests.slow.statistics.stages import SIGMA, Stage, adopting, blocks, confirmed

FEWER = 2_500  # where the share is far from its bound
LEAST = Plan().least_effect
ERROR = 3 * (0.05 * 0.95 / 20_000) ** 0.5  # of a simulated share of 5 %


@pytest.mark.parametrize("prior_df", [2, 10])
@pytest.mark.parametrize(("arms", "last"), [(1, 3), (1, 5), (1, 7), (3, 7), (6, 7)])
def test_arms_that_are_better_by_just_the_least_effect_are_seldom_adopted(arms: int, last: int, prior_df: int) -> None:
    assert adopting(Stage((LEAST,) * arms, Plan(last=last), prior_df=prior_df)) <= 0.05 + ERROR


@pytest.mark.parametrize("prior_df", [2, 10])
def test_a_noisier_arm_is_seldom_confirmed(prior_df: int) -> None:
    assert confirmed(Stage((LEAST,), prior_df=prior_df, ratio=3.0)) <= 0.05


@pytest.mark.parametrize("arms", [1, 3, 6])
@pytest.mark.parametrize(("effect", "power"), [(0.05, 0.95), (0.03, 0.60)])
def test_an_arm_that_is_better_is_found(arms: int, effect: float, power: float) -> None:
    assert adopting(Stage((effect, *[0.0] * (arms - 1))), FEWER) >= power


@pytest.mark.parametrize("arms", [1, 6])
def test_the_least_effect_that_is_said_to_be_seen_is_seen(arms: int) -> None:
    known = Noise(SIGMA, 6)
    bounded = Noise(SIGMA * SIGMA / known.upper_bound(NOISE_CONFIDENCE), 6)  # whose upper bound is the true noise
    effect = detectable_effect(bounded, arms, Plan())
    assert adopting(Stage((effect, *[0.0] * (arms - 1)))) >= 0.8 - 0.03


@pytest.mark.parametrize(("effect", "sigma"), [(0.5, 0.05), (0.7, 0.10)])
def test_plain_gains_are_decided_at_the_first_looks(effect: float, sigma: float) -> None:
    plan = Plan(least_effect=0.05)
    assert blocks(Stage((effect,), plan, sigma, prior_df=10), FEWER) < 2.7
    assert blocks(Stage((effect,), plan, sigma, prior_df=0), FEWER) > 3.5


def adopting_beside_disturbances(*, adjusted: bool) -> float:
    """The share of stages that adopt an arm without the least effect, where neighbours cost the reference alone."""
    generator, plan, adopted = np.random.default_rng(1), Plan(), 0
    for _ in range(FEWER):
        lost = np.where(generator.random((2, plan.last)) < 0.3, generator.uniform(0.3, 1.2, (2, plan.last)), 0.0)
        values = generator.normal(scale=SIGMA, size=lost.shape) + np.array([[0.0], [math.log1p(LEAST)]])
        values[0] -= 0.5 * lost[0]
        runs = dict(zip(["base", "arm"], np.exp(values).tolist(), strict=True))
        covariates = dict(zip(runs, lost.tolist(), strict=True)) if adjusted and lost.any() else None
        prior = Noise(SIGMA * math.sqrt(generator.chisquare(2) / 2), 2)
        adopted += compare(runs, "base", plan, prior, covariates)["arm"].decision is Decision.BETTER
    return adopted / FEWER


def test_disturbance_of_the_reference_is_no_gain_of_another_arm() -> None:
    assert adopting_beside_disturbances(adjusted=True) <= 0.05 + 3 * (0.05 * 0.95 / FEWER) ** 0.5
    assert adopting_beside_disturbances(adjusted=False) > 0.12
