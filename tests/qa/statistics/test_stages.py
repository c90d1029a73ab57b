"""Simulated stages: how often arms without the least effect, and arms with it, are adopted."""

import pytest

from loadgen.stats.group_sequential import NOISE_CONFIDENCE, Plan, detectable_effect
from loadgen.stats.variance import Noise
from tests.slow.statistics.disturbed_stages import DisturbedStage
from tests.slow.statistics.stages import SIGMA, Stage, adopting, blocks, confirmed

FEWER = 2_500  # where the share is far from its bound
LEAST = Plan().least_effect
ERROR = 3 * (0.05 * 0.95 / 20_000) ** 0.5  # of a simulated share of 5 %
FEWER_ERROR = 3 * (0.05 * 0.95 / FEWER) ** 0.5


@pytest.mark.parametrize(
    ("arms", "last", "prior_df"),
    [(1, 3, 2), (1, 5, 10), (1, 7, 2), (1, 7, 10), (3, 7, 10), (6, 7, 2)],
)
def test_arms_that_are_better_by_just_the_least_effect_are_seldom_adopted(
    arms: int, last: int, prior_df: int
) -> None:
    assert adopting(Stage((LEAST,) * arms, Plan(last=last), prior_df=prior_df)) <= 0.05 + ERROR


@pytest.mark.parametrize("prior_df", [2, 10])
def test_a_noisier_arm_is_seldom_confirmed(prior_df: int) -> None:
    assert confirmed(Stage((LEAST,), prior_df=prior_df, ratio=3.0)) <= 0.05


@pytest.mark.parametrize("arms", [1, 6])
@pytest.mark.parametrize(("effect", "power"), [(0.05, 0.95), (0.03, 0.60)])
def test_an_arm_that_is_better_is_found(arms: int, effect: float, power: float) -> None:
    assert adopting(Stage((effect, *[0.0] * (arms - 1))), FEWER) >= power


@pytest.mark.parametrize("arms", [1, 6])
def test_the_least_effect_that_is_said_to_be_seen_is_seen(arms: int) -> None:
    known = Noise(SIGMA, 6)
    # Whose upper bound is the true noise.
    bounded = Noise(SIGMA * SIGMA / known.upper_bound(NOISE_CONFIDENCE), 6)
    effect = detectable_effect(bounded, arms, Plan())
    # More than 3 standard errors.
    assert adopting(Stage((effect, *[0.0] * (arms - 1))), FEWER) >= 0.8 - 0.03


@pytest.mark.parametrize(("effect", "sigma"), [(0.5, 0.05), (0.7, 0.10)])
def test_plain_gains_are_decided_at_the_first_looks(effect: float, sigma: float) -> None:
    plan = Plan(least_effect=0.05)
    assert blocks(Stage((effect,), plan, sigma, prior_df=10), FEWER) < 2.7
    assert blocks(Stage((effect,), plan, sigma, prior_df=0), FEWER) > 3.5


def test_disturbance_of_the_reference_is_no_gain_of_another_arm() -> None:
    stage = DisturbedStage(0.3, (0.5, 0.0), busy_before=False)
    assert stage.adopting(FEWER) <= 0.05 + FEWER_ERROR
    assert stage.adopting(FEWER, adjusted=False) > 0.12


@pytest.mark.parametrize(("disturbed", "last"), [(0.3, 2), (0.3, 7), (0.7, 3), (1.0, 2), (1.0, 7)])
def test_disturbance_of_both_arms_is_no_gain(disturbed: float, last: int) -> None:
    assert DisturbedStage(disturbed, (0.5, 0.5), last=last).adopting(FEWER) <= 0.05 + FEWER_ERROR


@pytest.mark.parametrize(
    ("disturbed", "last", "power"), [(0.3, 2, 0.85), (0.7, 2, 0.7), (0.7, 3, 0.75), (1.0, 2, 0.95)]
)
def test_plain_gain_on_a_busy_machine_is_found_in_few_blocks(
    disturbed: float, last: int, power: float
) -> None:
    assert DisturbedStage(disturbed, (0.03, 0.03), 0.35, last).adopting(FEWER) >= power
