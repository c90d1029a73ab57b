"""A fit by least squares that leaves outliers out, of values whose noise is a share of them."""

import numpy as np
from msgspec import Struct

from loadgen.util.arrays import Bools, Floats

ROUNDS = 12
OUTLIER = 3.5  # medians of the distances of what is kept
HIGHEST = 99.5  # percentile of the values with which the fit begins


class TrimmedFit(Struct, frozen=True):
    """values = columns @ coefficients, for the rows that are kept.

    Attributes:
        coefficients: Of each column.
        errors: The standard error of each; NaN where the kept rows do not tell it.
        kept: Which rows are no outliers, shape (n,).
        spread: Median distance of the kept values from the fit.
    """

    coefficients: Floats
    errors: Floats
    kept: Bools
    spread: float

    @classmethod
    def of(cls, columns: Floats, values: Floats, *, least: float, share: float) -> "TrimmedFit":
        """Fit; a coefficient that would be negative is 0.

        Args:
            columns: Shape (n, k), k < n; the first one is the constant.
            values: Shape (n,), above 0.
            least: No value this near to the fit is an outlier.
            share: Nor is one within this share of what is fitted; the noise is taken to grow alike.
        """
        kept = values <= np.percentile(values, HIGHEST)
        noise = np.maximum(least, share * values)
        coefficients = np.zeros(columns.shape[1])
        distances = np.zeros(len(values))
        for _ in range(ROUNDS):
            coefficients = _without_negative(columns[kept], values[kept], noise[kept] ** -2)
            fitted = columns @ coefficients
            distances = np.abs(values - fitted)
            noise = np.maximum(least, share * fitted)
            usual = OUTLIER * float(np.median(distances[kept]))
            near = distances <= np.maximum(noise, usual)
            if (near == kept).all() or near.sum() <= columns.shape[1]:
                break
            kept = near
        errors = _errors(columns[kept, 1:], distances[kept], noise[kept] ** -2)
        return cls(coefficients, errors, kept, float(np.median(distances[kept])))


def _without_negative(columns: Floats, values: Floats, weights: Floats) -> Floats:
    """Fit; columns are centered, so that one that hardly varies takes nothing from the constant."""
    means, middle = weights @ columns / weights.sum(), float(weights @ values / weights.sum())
    root = np.sqrt(weights)
    used = list(range(1, columns.shape[1]))
    coefficients = np.zeros(columns.shape[1])
    while used:
        centered = (columns[:, used] - means[used]) * root[:, None]
        solution = np.linalg.lstsq(centered, (values - middle) * root, rcond=None)[0]
        if (solution >= 0).all():
            coefficients[used] = solution
            break
        del used[int(np.argmin(solution))]
    coefficients[0] = middle - float(means @ coefficients)
    return coefficients


def _errors(rows: Floats, distances: Floats, weights: Floats) -> Floats:
    """The standard errors of the constant and of the other columns."""
    means = weights @ rows / weights.sum()
    centered = rows - means
    free = max(1, len(rows) - len(means) - 1)
    variance = float(weights @ np.square(distances)) / free
    inverse = np.linalg.pinv((centered * weights[:, None]).T @ centered)
    constant = means @ inverse @ means + 1 / weights.sum()
    errors: Floats = np.sqrt(variance * np.append(constant, np.diag(inverse)))
    errors[1:][np.ptp(rows, axis=0) == 0] = np.nan
    return errors
