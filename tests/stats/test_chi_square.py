"""Quantiles of the chi-square distribution, as in closed forms and printed tables."""

import math

import pytest

from loadgen.stats import chi_square


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_two_df_are_exponential(p: float) -> None:
    assert chi_square.quantile(p, 2) == pytest.approx(-2 * math.log1p(-p), rel=1e-9)


@pytest.mark.parametrize(
    ("p", "df", "value"), [(0.1, 1, 0.015791), (0.1, 5, 1.610308), (0.95, 10, 18.307038), (0.1, 100, 82.358136)]
)
def test_tabulated_quantiles(p: float, df: float, value: float) -> None:
    assert chi_square.quantile(p, df) == pytest.approx(value, abs=1e-5)
