import numpy as np

from loadgen.stats.trimmed_fit import TrimmedFit


def line(outliers: int) -> TrimmedFit:
    draw = np.random.default_rng(3)
    x = draw.uniform(0, 100, 400)
    y = 10 + 0.5 * x + draw.normal(0, 0.2, 400)
    y[:outliers] += draw.uniform(50, 500, outliers)
    return TrimmedFit.of(np.column_stack([np.ones(400), x]), y, least=0.1, share=0.0)


def test_a_line_is_found_through_outliers() -> None:
    fit = line(outliers=80)
    assert abs(fit.coefficients[0] - 10) < 3 * fit.errors[0] < 0.2
    assert abs(fit.coefficients[1] - 0.5) < 3 * fit.errors[1] < 0.01
    assert not fit.kept[:80].any()
    assert fit.kept[80:].mean() > 0.95


def test_a_coefficient_that_would_be_negative_is_0() -> None:
    x = np.arange(50.0)
    fit = TrimmedFit.of(np.column_stack([np.ones(50), x]), 100 - x, least=200.0, share=0.0)
    assert fit.coefficients[1] == 0


def test_a_column_that_does_not_vary_has_no_error() -> None:
    fit = TrimmedFit.of(
        np.column_stack([np.ones(50), np.zeros(50)]), np.full(50, 7.0), least=0.1, share=0.0
    )
    assert abs(fit.coefficients[0] - 7) < 1e-12
    assert np.isnan(fit.errors[1])
