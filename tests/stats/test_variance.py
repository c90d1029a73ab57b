"""Noise from residuals of two-way layouts and of replicates."""

import math

import numpy as np
import pytest

from loadgen.stats.variance import Noise


def test_effects_of_treatments_and_blocks_are_no_noise() -> None:
    values = np.add.outer([1.0, 2.0, 4.0], [0.1, -0.2, 0.3, 0.0])
    noise = Noise.of_two_way_layout(values)
    assert noise.sd == pytest.approx(0.0, abs=1e-9)
    assert noise.df == 2 * 3


def test_noise_of_two_treatments_is_that_of_differences() -> None:
    values = np.random.default_rng(2).normal(size=(2, 6))
    noise = Noise.of_two_way_layout(values)
    assert noise.sd == pytest.approx(np.std(values[0] - values[1], ddof=1) / math.sqrt(2))
    assert noise.df == 5


def test_missing_values_reduce_df() -> None:
    values = np.random.default_rng(3).normal(size=(3, 5))
    values[2, 2:] = math.nan
    assert Noise.of_two_way_layout(values).df == 12 - (3 + 5 - 1)


def test_single_block_has_no_df() -> None:
    assert Noise.of_two_way_layout(np.array([[1.0], [2.0]])).df == 0


def test_groups_are_pooled_around_their_own_means() -> None:
    groups = [Noise.of_replicates(np.array(each)) for each in ([1.0, 3.0], [10.0, 10.0, 10.0], [7.0])]
    assert Noise.pooled(groups) == Noise(pytest.approx(math.sqrt(2 / 3)), 3)
    assert Noise.pooled(groups[2:]) is None
