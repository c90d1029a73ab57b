"""Student's t distribution against SciPy's; quantiles of the chi-square distribution against
printed tables.
"""

import math

import pytest
from scipy import special  # scipy.stats takes seconds to import

from loadgen.stats import distributions
from loadgen.stats.distributions import student_two_sided_p, student_two_sided_quantile

FREEDOMS = [0.7, 1, 2, 3.5, 4, 11, 60, 1000.5, 100_000]


@pytest.mark.parametrize("df", FREEDOMS)
@pytest.mark.parametrize("t", [0.0, 1e-6, 0.3, 1.0, 2.5, 7.0, 40.0])
def test_p_value_is_that_of_scipy(t: float, df: float) -> None:
    assert student_two_sided_p(t, df) == pytest.approx(
        2 * special.stdtr(df, -t), rel=1e-9, abs=1e-300
    )


@pytest.mark.parametrize("df", FREEDOMS)
@pytest.mark.parametrize("p", [0.5, 0.05, 0.001, 1e-9])
def test_quantile_is_that_of_scipy(p: float, df: float) -> None:
    assert student_two_sided_quantile(p, df) == pytest.approx(-special.stdtrit(df, p / 2), rel=1e-9)


def test_p_value_of_infinity_is_0() -> None:
    assert student_two_sided_p(math.inf, 4) == 0.0


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_two_df_are_exponential(p: float) -> None:
    assert distributions.chi_square_quantile(p, 2) == pytest.approx(-2 * math.log1p(-p), rel=1e-9)


@pytest.mark.parametrize(
    ("p", "df", "value"),
    [(0.1, 1, 0.015791), (0.1, 5, 1.610308), (0.95, 10, 18.307038), (0.1, 100, 82.358136)],
)
def test_tabulated_quantiles(p: float, df: float, value: float) -> None:
    assert distributions.chi_square_quantile(p, df) == pytest.approx(value, abs=1e-5)
