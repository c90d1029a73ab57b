"""Student's t distribution against SciPy's."""

import math

import pytest
from scipy import stats

from loadgen.stats.student_t import two_sided_p, two_sided_quantile

FREEDOMS = [0.7, 1, 2, 3.5, 4, 11, 60, 1000.5, 100_000]


@pytest.mark.parametrize("df", FREEDOMS)
@pytest.mark.parametrize("t", [0.0, 1e-6, 0.3, 1.0, 2.5, 7.0, 40.0])
def test_p_value_is_that_of_scipy(t: float, df: float) -> None:
    assert two_sided_p(t, df) == pytest.approx(2 * stats.t.sf(t, df), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("df", FREEDOMS)
@pytest.mark.parametrize("p", [0.5, 0.05, 0.001, 1e-9])
def test_quantile_is_that_of_scipy(p: float, df: float) -> None:
    assert two_sided_quantile(p, df) == pytest.approx(stats.t.isf(p / 2, df), rel=1e-9)


def test_p_value_of_infinity_is_0() -> None:
    assert two_sided_p(math.inf, 4) == 0.0
