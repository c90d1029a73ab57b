"""Statistics of a stage: boundaries as published, noise as arms and blocks leave it, decisions as they are defined."""

import itertools
import math

import numpy as np
import pytest

from loadgen.stats.group_sequential import Comparison, Decision, Plan, boundaries, compare, least_effect_seen, spent
from loadgen.stats.variance import Noise

BETTER, NOT_BETTER, OPEN = Decision


class TestBoundaries:
    def test_at_the_end_all_is_spent(self) -> None:
        assert spent(0.05, 1.0) == pytest.approx(0.05)

    def test_little_is_spent_at_first(self) -> None:
        assert spent(0.025, 0.5) == pytest.approx(
            2 * 0.5 * math.erfc(2.241403 / math.sqrt(0.5) / math.sqrt(2)), rel=1e-5
        )

    def test_they_are_those_of_the_tables(self) -> None:
        # Lan and DeMets' function for O'Brien and Fleming, one-sided 0.025, five looks evenly spaced.
        found = boundaries(0.025, (1, 2, 3, 4, 5))
        assert found == pytest.approx((4.8769, 3.3569, 2.6803, 2.2898, 2.0310), abs=2e-4)

    def test_with_one_look_it_is_the_quantile(self) -> None:
        assert boundaries(0.05, (7,)) == pytest.approx((1.644854,), abs=1e-5)

    @pytest.mark.slow
    @pytest.mark.parametrize("alpha", [0.05, 0.01, 0.005, 0.0025, 0.001, 0.0005])
    @pytest.mark.parametrize("most", [2, 7, 60, 80, 100])
    def test_all_that_a_study_may_ask_for_has_some(self, alpha: float, most: int) -> None:
        """The first of up to a hundred looks spends next to nothing."""
        found = boundaries(alpha, tuple(range(2, most + 1)))
        first = math.erfc(found[0] / math.sqrt(2)) / 2
        assert first == pytest.approx(spent(alpha, 2 / most), rel=1e-6)
        assert all(one > other for one, other in itertools.pairwise(found))
        assert found[-1] >= boundaries(alpha, (most,))[0] - 1e-6

    def test_a_study_of_many_arms_and_blocks_is_decided(self) -> None:
        noise, plan = Noise(0.02, 100), Plan(confidence=0.99, last=100)
        assert 0.01 < least_effect_seen(noise, 20, plan) < 0.03

    def test_what_has_no_effect_crosses_one_as_often_as_was_asked(self) -> None:
        looks, alpha = tuple(range(2, 8)), 0.05
        steps = np.random.default_rng(1).normal(size=(200_000, 7))
        sums = np.cumsum(steps, axis=1)
        crossed = np.zeros(len(steps), dtype=bool)
        for look, z in zip(looks, boundaries(alpha, looks), strict=True):
            crossed |= sums[:, look - 1] / math.sqrt(look) > z
        assert crossed.mean() == pytest.approx(alpha, abs=4 * math.sqrt(alpha / len(steps)))


class TestNoise:
    def test_what_arms_and_blocks_explain_is_no_noise(self) -> None:
        values = np.add.outer([1.0, 2.0, 4.0], [0.1, -0.2, 0.3, 0.0])
        noise = Noise.of(values)
        assert noise.sd == pytest.approx(0.0, abs=1e-9)
        assert noise.df == 2 * 3

    def test_of_two_arms_it_is_that_of_their_differences(self) -> None:
        values = np.random.default_rng(2).normal(size=(2, 6))
        noise = Noise.of(values)
        assert noise.sd == pytest.approx(np.std(values[0] - values[1], ddof=1) / math.sqrt(2))
        assert noise.df == 5

    def test_an_arm_that_was_dropped_counts_as_far_as_it_came(self) -> None:
        values = np.random.default_rng(3).normal(size=(3, 5))
        values[2, 2:] = math.nan
        assert Noise.of(values).df == 12 - (3 + 5 - 1)

    def test_one_run_each_shows_none(self) -> None:
        assert Noise.of(np.array([[1.0], [2.0]])).df == 0

    def test_it_is_pooled_over_groups_with_means_of_their_own(self) -> None:
        groups = [Noise.of_replicates(np.array(each)) for each in ([1.0, 3.0], [10.0, 10.0, 10.0], [7.0])]
        assert Noise.pooled(groups) == Noise(pytest.approx(math.sqrt(2 / 3)), 3)
        assert Noise.pooled(groups[2:]) is None


def runs(*effects: float, blocks: int, sigma: float = 0.001, seed: int = 1) -> dict[str, list[float]]:
    """A reference at 1,000 and arms with these effects, with a noise of `sigma`."""
    generator = np.random.default_rng(seed)
    levels = {"base": 0.0} | {f"arm {number}": effect for number, effect in enumerate(effects)}
    drift = generator.normal(scale=0.02, size=blocks)
    return {
        name: list(1000.0 * (1 + effect) * np.exp(drift + generator.normal(scale=sigma, size=blocks)))
        for name, effect in levels.items()
    }


class TestCompare:
    def test_an_arm_that_is_clearly_better_is_known_before_the_last_block(self) -> None:
        found = compare(runs(0.20, -0.20, 0.0, blocks=3), "base", Plan())["arm 0"]
        assert found.decision is BETTER
        assert found.effect == pytest.approx(0.20, abs=0.01)
        assert 0.01 < found.low < found.effect < found.high
        assert found.blocks <= 3

    def test_what_is_better_by_less_than_the_least_effect_is_not_better(self) -> None:
        assert compare(runs(0.005, blocks=7), "base", Plan())["arm 0"].decision is NOT_BETTER

    def test_what_is_worse_is_given_up_early(self) -> None:
        found = compare(runs(-0.20, 0.0, 0.0, blocks=3), "base", Plan())["arm 0"]
        assert found.decision is NOT_BETTER
        assert found.high < 0

    def test_before_the_first_look_nothing_is_known(self) -> None:
        found = compare(runs(0.20, blocks=1), "base", Plan())["arm 0"]
        assert found.decision is OPEN
        assert found.blocks == 0
        assert math.isnan(found.effect)

    def test_after_the_last_block_everything_is_decided(self) -> None:
        found = compare(runs(0.012, 0.011, 0.009, blocks=7, sigma=0.02), "base", Plan())
        assert all(one.decision is not OPEN for one in found.values())

    def test_the_drift_of_the_blocks_is_no_effect(self) -> None:
        drifting = runs(0.0, 0.0, blocks=7)
        for values in drifting.values():
            values[:] = [value * 1.5**block for block, value in enumerate(values)]
        assert {one.decision for one in compare(drifting, "base", Plan()).values()} == {NOT_BETTER}

    def test_an_arm_that_was_decided_needs_no_more_runs(self) -> None:
        complete = runs(0.20, 0.02, blocks=7)
        short = dict(complete)
        decided = compare(complete, "base", Plan())["arm 0"]
        short["arm 0"] = complete["arm 0"][: decided.blocks]
        assert compare(short, "base", Plan())["arm 0"] == decided

    def test_what_was_decided_is_not_decided_anew_when_more_blocks_come(self) -> None:
        complete = runs(0.20, 0.02, blocks=7)
        early = compare({name: values[:3] for name, values in complete.items()}, "base", Plan())
        late = compare(complete, "base", Plan())
        assert {name: one for name, one in early.items() if one.decision is not OPEN}.items() <= late.items()

    def test_the_order_is_that_of_the_arms(self) -> None:
        assert list(compare(runs(0.0, 0.1, 0.05, blocks=2), "base", Plan())) == ["arm 0", "arm 1", "arm 2"]


class TestLeastEffectSeen:
    def test_it_grows_with_the_noise_and_with_the_arms(self) -> None:
        plan = Plan()
        seen = [least_effect_seen(Noise(sd, 12), arms, plan) for sd, arms in ((0.005, 1), (0.012, 1), (0.012, 6))]
        assert plan.least_effect < seen[0] < seen[1] < seen[2]

    def test_without_noise_it_is_the_least_effect(self) -> None:
        assert least_effect_seen(Noise(0.0, 12), 3, Plan()) == pytest.approx(0.01)


class TestInverted:
    def test_a_gain_of_a_fourth_is_a_value_that_falls_by_a_fifth_and_its_bounds_change_places(self) -> None:
        inverted = Comparison(BETTER, 0.25, 0.0, 1.0, 3).inverted
        assert (inverted.effect, inverted.low, inverted.high) == pytest.approx((-0.2, -0.5, 0.0))
        assert (inverted.decision, inverted.blocks) == (BETTER, 3)

    def test_what_nothing_bounds_stays_unbounded_on_the_other_side(self) -> None:
        inverted = Comparison(OPEN, 0.25, -1.0, 0.6, 2).inverted
        assert (inverted.low, inverted.high) == (pytest.approx(-0.375), math.inf)
        inverted = Comparison(OPEN, 0.25, 0.0, math.inf, 2).inverted
        assert (inverted.low, inverted.high) == (-1.0, 0.0)
