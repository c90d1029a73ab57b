"""Two-way layouts: noise, and differences of treatments with and without a covariate."""

import math

import numpy as np
import pytest

from loadgen.stats.two_way_layout import TwoWayLayout


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
LEVELS = np.add.outer([1.0, 1.5], [0.1, -0.2, 0.3, 0.0, 0.2])


def test_covariate_is_removed_from_noise_and_difference() -> None:
    slopes = np.array([[-0.8], [-0.1]])  # a disturbance costs one treatment more than the other
    layout = TwoWayLayout.fit(LEVELS + slopes * DISTURBED, DISTURBED)
    assert (layout.noise.sd, layout.noise.df) == (pytest.approx(0.0, abs=1e-7), 2)
    assert layout.difference(1, 0)[0] == pytest.approx(0.5)


def test_single_disturbed_value_leaves_the_other_blocks() -> None:
    values = LEVELS + np.random.default_rng(1).normal(size=LEVELS.shape)
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
    assert math.isinf(TwoWayLayout.fit(LEVELS, covariate).difference(1, 0)[1])


def test_covariate_with_missing_values() -> None:
    levels = np.vstack([LEVELS, LEVELS[0] + 1.0])
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
