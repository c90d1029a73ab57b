"""Two-way layouts: noise, and differences of treatments with and without a covariate."""

import math

import numpy as np
import pytest

from loadgen.stats.layouts import MIN_DF, Adjustment, DisturbedLayout, TwoWayLayout
from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats


def test_effects_of_treatments_and_blocks_are_no_noise() -> None:
    values = np.add.outer([1.0, 2.0, 4.0], [0.1, -0.2, 0.3, 0.0])
    noise = TwoWayLayout.fit(values).noise
    assert noise.sd == pytest.approx(0.0, abs=1e-9)
    assert noise.df == 2 * 3


def test_noise_of_two_treatments_is_that_of_differences() -> None:
    values = np.random.default_rng(2).normal(size=(2, 6))
    noise = TwoWayLayout.fit(values).noise
    assert noise.sd == pytest.approx(np.std(values[0] - values[1], ddof=1) / math.sqrt(2))
    assert noise.df == 5


def test_missing_values_reduce_df() -> None:
    values = np.random.default_rng(3).normal(size=(3, 5))
    values[2, 2:] = math.nan
    assert TwoWayLayout.fit(values).noise.df == 12 - (3 + 5 - 1)


def test_single_block_has_no_df() -> None:
    assert TwoWayLayout.fit(np.array([[1.0], [2.0]])).noise.df == 0


DISTURBED = np.array([[0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0, 0.0]])
UNDISTURBED_LEVELS = np.add.outer([1.0, 1.5], [0.1, -0.2, 0.3, 0.0, 0.2])


def test_covariate_is_removed_from_noise_and_difference() -> None:
    slopes = np.array([[-0.8], [-0.1]])  # a disturbance costs one treatment more than the other
    layout = TwoWayLayout.fit(UNDISTURBED_LEVELS + slopes * DISTURBED, DISTURBED)
    assert (layout.noise.sd, layout.noise.df) == (pytest.approx(0.0, abs=1e-7), 2)
    assert layout.difference(1, 0)[0] == pytest.approx(0.5)


def test_single_disturbed_value_leaves_the_other_blocks() -> None:
    values = UNDISTURBED_LEVELS + np.random.default_rng(1).normal(size=UNDISTURBED_LEVELS.shape)
    covariate = np.zeros_like(values)
    covariate[0, 2] = 1.0
    difference, variance = TwoWayLayout.fit(values, covariate).difference(1, 0)
    others = [0, 1, 3, 4]
    assert difference == pytest.approx(np.mean(values[1, others] - values[0, others]))
    assert variance == pytest.approx(2 / 4)


def test_constant_covariate_is_no_covariate() -> None:
    values = np.random.default_rng(1).normal(size=(2, 4))
    assert TwoWayLayout.fit(values, np.full((2, 4), 0.3)).noise == TwoWayLayout.fit(values).noise


def test_treatment_that_was_always_disturbed_alike_cannot_be_told_from_the_disturbance() -> None:
    covariate = np.array([[0.0] * 5, [0.7] * 5])
    assert math.isinf(TwoWayLayout.fit(UNDISTURBED_LEVELS, covariate).difference(1, 0)[1])


def test_covariate_with_missing_values() -> None:
    levels = np.vstack([UNDISTURBED_LEVELS, UNDISTURBED_LEVELS[0] + 1.0])
    covariate = np.vstack([DISTURBED, np.zeros(5)])
    values = levels - 0.8 * covariate
    values[2, 2:] = math.nan
    layout = TwoWayLayout.fit(values, covariate)
    assert layout.difference(1, 0)[0] == pytest.approx(0.5)
    assert layout.difference(2, 0)[0] == pytest.approx(1.0)


def test_difference_with_missing_values_is_that_of_the_common_blocks() -> None:
    values = np.random.default_rng(1).normal(size=(2, 5))
    values[0, 1] = values[1, 3] = math.nan
    common = [0, 2, 4]
    difference, variance = TwoWayLayout.fit(values).difference(1, 0)
    assert difference == pytest.approx(np.mean(values[1, common] - values[0, common]))
    assert variance == pytest.approx(2 / 3)


def test_treatments_without_a_common_block_cannot_be_compared() -> None:
    values = np.array([[1.0, math.nan], [math.nan, 2.0]])
    assert math.isinf(TwoWayLayout.fit(values).difference(1, 0)[1])


PRIOR = Noise(0.01, 2)
LEVELS = np.array([[0.0], [0.3]])


def values(blocks: int, sd: float = 0.01) -> Floats:
    """Two treatments, 0.3 apart."""
    found: Floats = LEVELS + np.random.default_rng(1).normal(scale=sd, size=(2, blocks))
    return found


def disturbance(blocks: int, *where: tuple[int, int]) -> Floats:
    """A disturbance of 0.5 and more at these places."""
    found = np.zeros((2, blocks))
    for number, place in enumerate(where):
        found[place] = 0.5 + 0.1 * number
    return found


def differences(of: Floats) -> Floats:
    """The difference in each block."""
    found: Floats = of[1] - of[0]
    return found


@pytest.mark.parametrize("blocks", [2, 3, 7])
@pytest.mark.parametrize("disturbances", [None, np.zeros((2, 7))])
def test_without_a_disturbance_the_difference_lies_within_those_of_the_blocks(
    disturbances: Floats | None, blocks: int
) -> None:
    given = values(blocks)
    found = DisturbedLayout(
        given, None if disturbances is None else disturbances[:, :blocks], PRIOR
    ).contrast(1, 0)
    plain = TwoWayLayout.fit(given).noise.with_prior(PRIOR)
    assert found.effect == pytest.approx(differences(given).mean())
    assert (found.sd, found.df) == (pytest.approx(plain.sd * math.sqrt(2 / blocks)), plain.df)
    assert found.adjustment is Adjustment.NONE


def test_slopes_are_taken_out_where_they_leave_degrees_of_freedom() -> None:
    lost = disturbance(7, (0, 1), (0, 4), (1, 2), (1, 5))
    found = DisturbedLayout(values(7, sd=0.0) - np.array([[0.8], [0.1]]) * lost, lost).contrast(
        1, 0
    )
    assert found.effect == pytest.approx(0.3)
    assert found.df >= MIN_DF
    assert found.adjustment is Adjustment.SLOPES
    assert found.bounded_below
    assert found.bounded_above


def test_disturbed_blocks_are_left_out_where_slopes_would_explain_everything() -> None:
    lost = disturbance(3, (0, 1), (1, 2))
    given = values(3) - lost
    found = DisturbedLayout(given, lost, PRIOR).contrast(1, 0)
    assert found.effect == pytest.approx(differences(given)[0])
    assert (found.sd, found.df) == (pytest.approx(PRIOR.sd * math.sqrt(2)), PRIOR.df)
    assert found.adjustment is Adjustment.LEFT_OUT


def test_single_undisturbed_block_needs_the_noise_of_earlier_values() -> None:
    lost = disturbance(2, (0, 1))
    assert math.isnan(DisturbedLayout(values(2) - lost, lost).contrast(1, 0).sd)


def test_where_each_start_was_disturbed_the_difference_lies_within_those_of_the_blocks() -> None:
    lost = disturbance(2, (0, 0), (0, 1), (1, 0), (1, 1))
    given = values(2) - 0.03 * lost
    found = DisturbedLayout(given, lost, PRIOR).contrast(1, 0)
    assert found.effect == pytest.approx(differences(given).mean())
    assert found.bounded_below
    assert found.bounded_above
    assert found.effect > 10 * found.sd


def test_noise_of_disturbed_values_is_not_lowered_by_that_of_quiet_ones() -> None:
    lost = disturbance(2, (0, 0), (0, 1), (1, 0), (1, 1))
    given = np.array([[0.0, -0.02], [0.3, 0.31]])
    own = TwoWayLayout.fit(given).noise
    found = DisturbedLayout(given, lost, PRIOR).contrast(1, 0)
    assert PRIOR.sd < own.sd < 2.5 * PRIOR.sd
    assert (found.sd, found.df) == (pytest.approx(own.sd), own.df)


def test_treatment_that_was_disturbed_more_often_is_not_bounded_above() -> None:
    lost = disturbance(2, (1, 0), (1, 1), (0, 0))
    layout = DisturbedLayout(values(2) - lost, lost, PRIOR)
    found, reverse = layout.contrast(1, 0), layout.contrast(0, 1)
    assert found.adjustment is Adjustment.OPEN_BOUNDS
    assert (found.bounded_below, found.bounded_above) == (True, False)
    assert (reverse.bounded_below, reverse.bounded_above) == (False, True)


def test_other_treatments_link_blocks_in_which_one_was_disturbed() -> None:
    given = np.vstack([values(2, sd=0.0), values(2, sd=0.0)[:1]])
    lost = np.vstack([disturbance(2, (0, 0), (1, 1)), np.zeros(2)])
    found = DisturbedLayout(given - lost, lost, PRIOR).contrast(1, 0)
    assert found.effect == pytest.approx(0.3)
    assert found.bounded_below
    assert found.bounded_above


def test_noise_is_that_of_all_values_where_slopes_leave_too_few_degrees_of_freedom() -> None:
    lost = disturbance(2, (0, 0), (1, 1))
    given = values(2) - lost
    assert DisturbedLayout(given, lost).noise == TwoWayLayout.fit(given).noise
