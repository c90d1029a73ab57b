"""A fit by least squares that leaves outliers out."""

from dataclasses import dataclass

import numpy as np

from loadgen.util.arrays import Bools, Floats

ROUNDS = 12
OUTLIER = 3.5  # medians of the distances of what is kept
HIGHEST = 99.5  # percentile of the values with which the fit begins


@dataclass(frozen=True, slots=True)
class TrimmedFit:
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
    def of(cls, columns: Floats, values: Floats, least_spread: float) -> "TrimmedFit":
        """Fit; a coefficient that would be negative is 0.

        Args:
            columns: Shape (n, k), k < n; the first one is the constant.
            values: Shape (n,).
            least_spread: No value this near to the fit is an outlier.
        """
        kept = values <= np.percentile(values, HIGHEST)
        coefficients = np.zeros(columns.shape[1])
        distances = np.zeros(len(values))
        for _ in range(ROUNDS):
            coefficients = _without_negative(columns[kept], values[kept])
            distances = np.abs(values - columns @ coefficients)
            near = distances <= max(least_spread, OUTLIER * float(np.median(distances[kept])))
            if (near == kept).all() or near.sum() <= columns.shape[1]:
                break
            kept = near
        rows = columns[kept]
        variance = float(np.square(distances[kept]).sum()) / max(1, len(rows) - rows.shape[1])
        inverse = np.linalg.pinv(rows.T @ rows)
        errors = np.sqrt(variance * np.diag(inverse))
        errors[np.ptp(rows, axis=0) == 0] = np.nan
        errors[0] = np.sqrt(variance * inverse[0, 0])
        return cls(coefficients, errors, kept, float(np.median(distances[kept])))


def _without_negative(columns: Floats, values: Floats) -> Floats:
    used = list(range(columns.shape[1]))
    while True:
        solution = np.linalg.lstsq(columns[:, used], values, rcond=None)[0]
        negative = [place for place in range(1, len(used)) if solution[place] < 0]
        if not negative:
            coefficients = np.zeros(columns.shape[1])
            coefficients[used] = solution
            return coefficients
        del used[min(negative, key=lambda place: solution[place])]
