"""Noise from residuals of replicates, pooled, and bounded."""

import math

import numpy as np
import pytest

from loadgen.stats.variance import Noise


def test_groups_are_pooled_around_their_own_means() -> None:
    groups = [
        Noise.of_replicates(np.array(each)) for each in ([1.0, 3.0], [10.0, 10.0, 10.0], [7.0])
    ]
    assert Noise.pooled(groups) == Noise(pytest.approx(math.sqrt(2 / 3)), 3)
    assert Noise.pooled(groups[2:]) is None


def test_levels_of_treatments_and_blocks_are_no_noise() -> None:
    noise = Noise.of_layout(np.add.outer([1.0, 2.0, 4.0], [0.1, -0.2, 0.3, 0.0]))
    assert noise.sd == pytest.approx(0.0, abs=1e-9)
    assert noise.df == 2 * 3


def test_noise_of_two_treatments_is_that_of_their_differences() -> None:
    values = np.random.default_rng(2).normal(size=(2, 6))
    noise = Noise.of_layout(values)
    assert noise.sd == pytest.approx(np.std(values[0] - values[1], ddof=1) / math.sqrt(2))
    assert noise.df == 5


def test_missing_values_reduce_the_df_of_a_layout() -> None:
    values = np.random.default_rng(3).normal(size=(3, 5))
    values[2, 2:] = math.nan
    assert Noise.of_layout(values).df == 12 - (3 + 5 - 1)


def test_a_single_block_has_no_df() -> None:
    assert Noise.of_layout(np.array([[1.0], [2.0]])).df == 0


def test_expected_noise_is_pooled() -> None:
    assert Noise(0.02, 1).with_prior(Noise(0.01, 3)) == Noise(
        pytest.approx(math.sqrt((0.02**2 + 3 * 0.01**2) / 4)), 4
    )


def test_noise_far_above_the_expected_one_is_not_pooled() -> None:
    assert Noise(0.026, 1).with_prior(Noise(0.01, 30)) == Noise(0.026, 2)


def test_noise_far_below_the_expected_one_is_pooled() -> None:
    assert Noise(0.001, 1).with_prior(Noise(0.01, 3)).df == 4


def test_noise_without_df_is_the_expected_one() -> None:
    assert Noise(math.nan, 0).with_prior(Noise(0.01, 3)) == Noise(pytest.approx(0.01), 3)


def test_upper_bound_of_noise_with_two_df() -> None:
    assert Noise(0.0137, 2).upper_bound(0.9) == pytest.approx(
        0.0137 * math.sqrt(2 / (-2 * math.log(0.9)))
    )


def test_upper_bound_nears_the_estimate() -> None:
    assert Noise(1.0, 10_000).upper_bound(0.9) == pytest.approx(1.0, abs=0.01)
