"""Group-sequential comparison: boundaries as published, decisions as defined."""

import itertools
import math

import numpy as np
import pytest

from loadgen.stats.group_sequential import (
    Comparison,
    Decision,
    Plan,
    blocks_needed,
    boundaries,
    compare,
    detectable_effect,
    spent,
)
from loadgen.stats.variance import Noise

BETTER, NOT_BETTER, OPEN = Decision


class TestBoundaries:
    def test_alpha_is_fully_spent_at_the_end(self) -> None:
        assert spent(0.05, 1.0) == pytest.approx(0.05)

    def test_little_of_alpha_is_spent_at_first(self) -> None:
        assert spent(0.025, 0.5) == pytest.approx(
            2 * 0.5 * math.erfc(2.241403 / math.sqrt(0.5) / math.sqrt(2)), rel=1e-5
        )

    def test_boundaries_are_those_of_published_tables(self) -> None:
        # Lan and DeMets' function for O'Brien and Fleming, one-sided 0.025, five looks evenly
        # spaced.
        found = boundaries(0.025, (1, 2, 3, 4, 5))
        assert found == pytest.approx((4.8769, 3.3569, 2.6803, 2.2898, 2.0310), abs=2e-4)

    def test_boundary_of_one_look_is_the_normal_quantile(self) -> None:
        assert boundaries(0.05, (7,)) == pytest.approx((1.644854,), abs=1e-5)

    @pytest.mark.slow
    @pytest.mark.parametrize("alpha", [0.05, 0.01, 0.005, 0.0025, 0.001, 0.0005])
    @pytest.mark.parametrize("most", [2, 7, 60, 80, 100])
    def test_boundaries_exist_for_every_allowed_design(self, alpha: float, most: int) -> None:
        """The first of up to a hundred looks spends next to nothing."""
        found = boundaries(alpha, tuple(range(2, most + 1)))
        first = math.erfc(found[0] / math.sqrt(2)) / 2
        assert first == pytest.approx(spent(alpha, 2 / most), rel=1e-6)
        assert all(one > other for one, other in itertools.pairwise(found))
        assert found[-1] >= boundaries(alpha, (most,))[0] - 1e-6

    @pytest.mark.integration
    def test_detectable_effect_of_many_arms_and_blocks(self) -> None:
        noise, plan = Noise(0.02, 100), Plan(confidence=0.99, last=100)
        assert 0.01 < detectable_effect(noise, 20, plan) < 0.03

    def test_false_crossings_are_as_frequent_as_alpha(self) -> None:
        looks, alpha = tuple(range(2, 8)), 0.05
        steps = np.random.default_rng(1).normal(size=(200_000, 7))
        sums = np.cumsum(steps, axis=1)
        crossed = np.zeros(len(steps), dtype=bool)
        for look, z in zip(looks, boundaries(alpha, looks), strict=True):
            crossed |= sums[:, look - 1] / math.sqrt(look) > z
        assert crossed.mean() == pytest.approx(alpha, abs=4 * math.sqrt(alpha / len(steps)))


def runs(
    *effects: float, blocks: int, sigma: float = 0.001, seed: int = 1
) -> dict[str, list[float]]:
    """A reference at 1,000 and arms with these effects, with a noise of `sigma`."""
    generator = np.random.default_rng(seed)
    levels = {"base": 0.0} | {f"arm {number}": effect for number, effect in enumerate(effects)}
    drift = generator.normal(scale=0.02, size=blocks)
    return {
        name: list(
            1000.0 * (1 + effect) * np.exp(drift + generator.normal(scale=sigma, size=blocks))
        )
        for name, effect in levels.items()
    }


class TestCompare:
    def test_clearly_better_arm_is_decided_early(self) -> None:
        found = compare(runs(0.20, -0.20, 0.0, blocks=3), "base", Plan())["arm 0"]
        assert found.decision is BETTER
        assert found.effect == pytest.approx(0.20, abs=0.01)
        assert 0.01 < found.low < found.effect < found.high
        assert found.blocks <= 3

    def test_gain_below_the_least_effect_is_not_better(self) -> None:
        assert compare(runs(0.005, blocks=7), "base", Plan())["arm 0"].decision is NOT_BETTER

    def test_worse_arm_is_decided_early(self) -> None:
        found = compare(runs(-0.20, 0.0, 0.0, blocks=3), "base", Plan())["arm 0"]
        assert found.decision is NOT_BETTER
        assert found.high < 0

    def test_comparison_is_open_before_the_first_look(self) -> None:
        found = compare(runs(0.20, blocks=1), "base", Plan())["arm 0"]
        assert found.decision is OPEN
        assert found.blocks == 0
        assert math.isnan(found.effect)

    def test_everything_is_decided_at_the_last_look(self) -> None:
        found = compare(runs(0.012, 0.011, 0.009, blocks=7, sigma=0.02), "base", Plan())
        assert all(one.decision is not OPEN for one in found.values())

    def test_drift_of_blocks_is_no_effect(self) -> None:
        drifting = runs(0.0, 0.0, blocks=7)
        for values in drifting.values():
            values[:] = [value * 1.5**block for block, value in enumerate(values)]
        assert {one.decision for one in compare(drifting, "base", Plan()).values()} == {NOT_BETTER}

    def test_decided_arm_needs_no_more_blocks(self) -> None:
        complete = runs(0.20, 0.02, blocks=7)
        short = dict(complete)
        decided = compare(complete, "base", Plan())["arm 0"]
        short["arm 0"] = complete["arm 0"][: decided.blocks]
        assert compare(short, "base", Plan())["arm 0"] == decided

    def test_decision_stands_when_more_blocks_come(self) -> None:
        complete = runs(0.20, 0.02, blocks=7)
        early = compare({name: values[:3] for name, values in complete.items()}, "base", Plan())
        late = compare(complete, "base", Plan())
        assert {
            name: one for name, one in early.items() if one.decision is not OPEN
        }.items() <= late.items()

    def test_comparisons_are_in_the_order_of_the_arms(self) -> None:
        assert list(compare(runs(0.0, 0.1, 0.05, blocks=2), "base", Plan())) == [
            "arm 0",
            "arm 1",
            "arm 2",
        ]


class TestPrior:
    def test_plain_gain_is_decided_at_the_first_look(self) -> None:
        values = {"base": [100.0, 101.0], "arm": [150.0, 153.0]}
        assert compare(values, "base", Plan())["arm"].decision is OPEN
        assert compare(values, "base", Plan(), Noise(0.01, 4))["arm"].decision is BETTER

    def test_noise_far_above_the_prior_decides_by_itself(self) -> None:
        values = {"base": [100.0, 101.0], "arm": [120.0, 190.0]}
        assert compare(values, "base", Plan(), Noise(0.01, 4))["arm"].low < -0.9


class TestCovariates:
    def test_disturbed_value_is_adjusted(self) -> None:
        values = runs(0.0, blocks=6, sigma=0.001)
        values["arm 0"][2] *= math.exp(-0.5)
        quiet = [0.0] * 6
        adjusted = compare(
            values,
            "base",
            Plan(),
            Noise(0.001, 10),
            {"base": quiet, "arm 0": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]},
        )["arm 0"]
        assert adjusted.decision is NOT_BETTER
        assert adjusted.effect == pytest.approx(0.0, abs=0.003)

    def test_without_a_covariate_it_is_a_loss(self) -> None:
        values = runs(0.0, blocks=6, sigma=0.001)
        values["arm 0"][2] *= math.exp(-0.5)
        assert compare(values, "base", Plan())["arm 0"].effect < -0.05


class TestBlocksNeeded:
    @pytest.mark.integration
    def test_as_many_blocks_make_the_effect_detectable(self) -> None:
        noise, plan = Noise(0.05, 20), Plan(least_effect=0.05, last=30)
        effect = detectable_effect(noise, 1, plan)
        assert blocks_needed(1.001 * effect, noise, 1, plan) == 30

    @pytest.mark.parametrize(("effect", "df"), [(0.05, 5), (0.02, 5), (0.2, 0)])
    def test_no_number_shows_the_least_effect_or_an_unknown_noise(
        self, effect: float, df: int
    ) -> None:
        assert blocks_needed(effect, Noise(0.05, df), 1, Plan(least_effect=0.05)) is None


class TestDetectableEffect:
    def test_detectable_effect_grows_with_noise_and_arms(self) -> None:
        plan = Plan()
        seen = [
            detectable_effect(Noise(sd, 12), arms, plan)
            for sd, arms in ((0.005, 1), (0.012, 1), (0.012, 6))
        ]
        assert plan.least_effect < seen[0] < seen[1] < seen[2]

    def test_without_noise_it_is_the_least_effect(self) -> None:
        assert detectable_effect(Noise(0.0, 12), 3, Plan()) == pytest.approx(0.01)


class TestInverted:
    def test_inverted_effect_and_bounds(self) -> None:
        inverted = Comparison(BETTER, 0.25, 0.0, 1.0, 3).inverted
        assert (inverted.effect, inverted.low, inverted.high) == pytest.approx((-0.2, -0.5, 0.0))
        assert (inverted.decision, inverted.blocks) == (BETTER, 3)

    def test_inverted_infinite_bound(self) -> None:
        inverted = Comparison(OPEN, 0.25, -1.0, 0.6, 2).inverted
        assert (inverted.low, inverted.high) == (pytest.approx(-0.375), math.inf)
        inverted = Comparison(OPEN, 0.25, 0.0, math.inf, 2).inverted
        assert (inverted.low, inverted.high) == (-1.0, 0.0)
