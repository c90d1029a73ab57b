"""Student's distribution: as scipy has it, wherever it is asked."""

import math

import pytest
from scipy import stats

from loadgen.stats.student_t import beyond, by_chance

FREEDOMS = [0.7, 1, 2, 3.5, 4, 11, 60, 1000.5, 100_000]


@pytest.mark.parametrize("df", FREEDOMS)
@pytest.mark.parametrize("t", [0.0, 1e-6, 0.3, 1.0, 2.5, 7.0, 40.0])
def test_what_chance_does_is_what_scipy_says(t: float, df: float) -> None:
    assert by_chance(t, df) == pytest.approx(2 * stats.t.sf(t, df), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("df", FREEDOMS)
@pytest.mark.parametrize("chance", [0.5, 0.05, 0.001, 1e-9])
def test_what_is_beyond_by_chance_is_what_scipy_says(chance: float, df: float) -> None:
    assert beyond(chance, df) == pytest.approx(stats.t.isf(chance / 2, df), rel=1e-9)


def test_nothing_is_as_far_as_infinity() -> None:
    assert by_chance(math.inf, 4) == 0.0
