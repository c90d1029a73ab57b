"""Two-way layout: values of treatments in blocks, fitted by least squares, with or without a covariate."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from loadgen.stats.variance import Noise
from loadgen.util.arrays import Bools, Floats

ESTIMABLE = 1e-6  # by how much a difference may depend on what the values do not determine


@dataclass(frozen=True, slots=True)
class TwoWayLayout:
    """A fitted layout: a value is the sum of its treatment's level, its block's level, and noise.

    With a covariate, a value also changes linearly with it, by a slope of its treatment. Levels are those at the
    covariate's minimum, so that nothing is extrapolated beyond what was seen.

    Attributes:
        values: Shape (treatments, blocks); NaN where a treatment has no value.
        noise: The noise of one value.
        solution: The design's pseudo-inverse, the design, and the observed values, if a value lacks or there is a
            covariate.
    """

    values: Floats
    noise: Noise
    solution: tuple[Floats, Floats, Floats] | None = None

    @classmethod
    def fit(
        cls,
        values: Floats,
        covariate: Floats | None = None,
    ) -> Self:
        """Fit a layout.

        Args:
            values: Shape (treatments, blocks); NaN where a treatment has no value.
            covariate: Of each value, same shape; None: none.
        """
        present = ~np.isnan(values)
        slopes = None if covariate is None else _slopes(covariate, present)
        if slopes is None and present.all():  # closed form of the same
            apart = values - values.mean(axis=0) - values.mean(axis=1)[:, None] + values.mean()
            return cls(values, Noise.from_squares(float(np.sum(apart**2)), (len(values) - 1) * (values.shape[1] - 1)))
        design = _design(present) if slopes is None else np.hstack([_design(present), slopes])
        observed: Floats = values[present]
        inverse: Floats = np.asarray(np.linalg.pinv(design), dtype=np.float64)
        residuals = observed - design @ (inverse @ observed)
        df = len(observed) - int(np.linalg.matrix_rank(design))
        return cls(values, Noise.from_squares(float(residuals @ residuals), df), (inverse, design, observed))

    def difference(self, treatment: int, reference: int) -> tuple[float, float]:
        """Return the difference of two treatments, and its variance as a multiple of the noise's.

        The variance is infinite if the values do not determine the difference.
        """
        if self.solution is None:
            apart = float(np.mean(self.values[treatment] - self.values[reference]))
            return apart, 2 / self.values.shape[1]
        inverse, design, observed = self.solution
        contrast = np.zeros(design.shape[1])
        contrast[treatment], contrast[reference] = 1.0, -1.0
        weights = contrast @ inverse
        if np.abs(weights @ design - contrast).max() > ESTIMABLE:
            return math.nan, math.inf
        return float(weights @ observed), float(weights @ weights)


def _design(present: Bools) -> Floats:
    """Return a row for each value that is present, with ones for its treatment and its block."""
    treatment, block = np.nonzero(present)
    rows = np.arange(len(treatment))
    design = np.zeros((len(treatment), sum(present.shape)))
    design[rows, treatment] = design[rows, present.shape[0] + block] = 1.0
    return design


def _slopes(covariate: Floats, present: Bools) -> Floats | None:
    """Return a column for each treatment with a covariate above the minimum; None if there is none."""
    beyond = np.where(present, covariate, math.nan)
    beyond -= np.nanmin(beyond)
    treatments = np.flatnonzero(np.nansum(beyond, axis=1) > 0)
    if not len(treatments):
        return None
    rows, treatment = beyond[present], np.nonzero(present)[0]
    return np.stack([np.where(treatment == each, rows, 0.0) for each in treatments], axis=1)
