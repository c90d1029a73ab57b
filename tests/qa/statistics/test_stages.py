"""Simulated stages: how often arms without the least effect, and arms with it, are adopted."""

import pytest

from loadgen.stats.group_sequential import NOISE_CONFIDENCE, Plan, detectable_effect
from loadgen.stats.variance import Noise
from tests.slow.statistics.disturbed_stages import KINDS, DisturbedStage, better, worse
from tests.slow.statistics.stages import SIGMA, Stage, adopting, blocks, confirmed

FEWER = 2_500  # where the share is far from its bound
LEAST = Plan().least_effect
ERROR = 3 * (0.05 * 0.95 / 20_000) ** 0.5  # of a simulated share of 5 %
# Shares of stages that find +12 % and -7 %.
POWER = {
    "quiet": (0.99, 0.99),
    "always busy, one start in twenty loses a third": (0.93, 0.9),
    "one burst of 1 to 4 starts": (0.92, 0.9),
}
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


@pytest.mark.parametrize("kind", KINDS)
def test_no_disturbance_makes_an_arm_better_or_worse(kind: str) -> None:
    assert better(DisturbedStage(kind).comparisons(FEWER)) <= 0.05 + FEWER_ERROR
    assert worse(DisturbedStage(kind, 0.0).comparisons(FEWER)) <= 0.05 + FEWER_ERROR


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("effect", [-0.07, 0.0, 0.12])
def test_bounds_hold_the_means_that_stand_beside_them(kind: str, effect: float) -> None:
    for comparison in DisturbedStage(kind, effect).comparisons(FEWER):
        assert comparison.low <= comparison.effect <= comparison.high


@pytest.mark.parametrize(("kind", "power"), POWER.items())
def test_plain_effects_are_found_on_a_busy_machine(kind: str, power: tuple[float, float]) -> None:
    gain, loss = power
    assert better(DisturbedStage(kind, 0.12).comparisons(FEWER)) >= gain
    assert worse(DisturbedStage(kind, -0.07).comparisons(FEWER)) >= loss


def test_labels_alone_keep_a_disturbed_reference_from_making_a_gain() -> None:
    kind = "the reference is disturbed more often"
    unlabelled = DisturbedStage(kind, labelled=False).comparisons(FEWER)
    assert better(unlabelled) > 0.1
