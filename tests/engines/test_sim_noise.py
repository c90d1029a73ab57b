"""The noise of steps: seeded, of the size that was asked for, and 1 on average."""

import math
import statistics

import pytest

from loadgen.engines.sim.engine_core import Noise


def test_without_noise_every_factor_is_1() -> None:
    quiet = Noise(0.0, 0.0, seed=1)
    assert [quiet() for _ in range(3)] == [1.0, 1.0, 1.0]


def test_steps_differ_by_so_much_and_are_right_on_average() -> None:
    noise = Noise(0.1, 0.0, seed=1)
    factors = [noise() for _ in range(10_000)]
    assert statistics.stdev(map(math.log, factors)) == pytest.approx(0.1, rel=0.05)
    assert statistics.fmean(factors) == pytest.approx(1.0, rel=0.005)


def test_a_start_is_as_fast_or_slow_as_a_whole() -> None:
    starts = [Noise(0.0, 0.1, seed) for seed in range(1000)]
    assert all(start() == start() for start in starts)
    assert statistics.stdev(math.log(start()) for start in starts) == pytest.approx(0.1, rel=0.1)


def test_the_same_seed_has_the_same_noise() -> None:
    one, same, other = (Noise(0.1, 0.1, seed) for seed in (1, 1, 2))
    factors = [one() for _ in range(5)]
    assert [same() for _ in range(5)] == factors
    assert [other() for _ in range(5)] != factors
