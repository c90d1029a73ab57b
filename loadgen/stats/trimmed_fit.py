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
        rows = columns[kept, 1:]
        means = rows.mean(axis=0)
        variance = float(np.square(distances[kept]).sum()) / max(1, len(rows) - len(means) - 1)
        inverse = np.linalg.pinv((rows - means).T @ (rows - means))
        errors = np.sqrt(
            variance * np.append(means @ inverse @ means + 1 / len(rows), np.diag(inverse))
        )
        errors[1:][np.ptp(rows, axis=0) == 0] = np.nan
        return cls(coefficients, errors, kept, float(np.median(distances[kept])))


def _without_negative(columns: Floats, values: Floats) -> Floats:
    """Fit; columns are centered, so that one that hardly varies takes nothing from the constant."""
    means, middle = columns.mean(axis=0), float(values.mean())
    used = list(range(1, columns.shape[1]))
    coefficients = np.zeros(columns.shape[1])
    while used:
        centered = columns[:, used] - means[used]
        solution = np.linalg.lstsq(centered, values - middle, rcond=None)[0]
        if (solution >= 0).all():
            coefficients[used] = solution
            break
        del used[int(np.argmin(solution))]
    coefficients[0] = middle - float(means @ coefficients)
    return coefficients
