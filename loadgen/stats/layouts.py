"""Layouts: values of treatments in blocks, fitted by least squares.

A `TwoWayLayout` may have a covariate. In a `DisturbedLayout` a disturbance lowered some of the
values.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Self

import numpy as np

from loadgen.stats.variance import Noise
from loadgen.util.arrays import Bools, Floats

ESTIMABLE = 1e-6  # by how much a difference may depend on what the values do not determine
MIN_DF = 2  # degrees of freedom that slopes must leave, or they explain whatever was seen


class Adjustment(StrEnum):
    """What was done about disturbed values when a difference was estimated."""

    NONE = "none"  # no value was disturbed
    SLOPES = "slopes"
    LEFT_OUT = "left out"
    OPEN_BOUNDS = "open bounds"


@dataclass(frozen=True, slots=True)
class TwoWayLayout:
    """A fitted layout: a value is the sum of its treatment's level, its block's level, and noise.

    With a covariate, a value also changes linearly with it, by a slope of its treatment. Levels are
    those at the covariate's minimum, so that nothing is extrapolated beyond what was seen.

    Attributes:
        values: Shape (treatments, blocks); NaN where a treatment has no value.
        noise: The noise of one value.
        solution: The design's pseudo-inverse, the design, and the observed values, if a value lacks
            or there is a covariate.
    """

    values: Floats
    noise: Noise
    solution: tuple[Floats, Floats, Floats] | None = None

    @classmethod
    def fit(cls, values: Floats, covariate: Floats | None = None) -> Self:
        """Fit a layout.

        Args:
            values: Shape (treatments, blocks); NaN where a treatment has no value.
            covariate: Of each value, same shape; None: none.
        """
        present = ~np.isnan(values)
        slopes = None if covariate is None else _slopes(covariate, present)
        if slopes is None and present.all():  # closed form of the same
            apart = values - values.mean(axis=0) - values.mean(axis=1)[:, None] + values.mean()
            return cls(
                values,
                Noise.from_squares(
                    float(np.sum(apart**2)), (len(values) - 1) * (values.shape[1] - 1)
                ),
            )
        design = _design(present) if slopes is None else np.hstack([_design(present), slopes])
        observed: Floats = values[present]
        inverse: Floats = np.asarray(np.linalg.pinv(design), dtype=np.float64)
        residuals = observed - design @ (inverse @ observed)
        df = len(observed) - int(np.linalg.matrix_rank(design))
        return cls(
            values,
            Noise.from_squares(float(residuals @ residuals), df),
            (inverse, design, observed),
        )

    def difference(self, treatment: int, reference: int) -> tuple[float, float]:
        """Return the difference of two treatments, and its variance as a multiple of the noise's.

        The variance is infinite if the values do not determine the difference.

        Args:
            treatment: Row of the treatment.
            reference: Row of the treatment that is subtracted.
        """
        if self.solution is None:
            apart = float(np.mean(self.values[treatment] - self.values[reference]))
            return apart, 2 / self.values.shape[1]
        inverse, design, observed = self.solution
        contrast = np.zeros(design.shape[1])
        contrast[treatment] = 1.0
        contrast[reference] = -1.0
        weights = contrast @ inverse
        if np.abs(weights @ design - contrast).max() > ESTIMABLE:
            return math.nan, math.inf
        return float(weights @ observed), float(weights @ weights)


@dataclass(frozen=True, slots=True)
class Contrast:
    """The difference of a treatment from a reference.

    Attributes:
        effect: The estimate.
        sd: Its standard error; NaN or infinite if the values do not tell it.
        df: Degrees of freedom of the standard error.
        adjustment: What was done about disturbed values.
        bounded_below, bounded_above: Whether the standard error bounds the effect on that side.
    """

    effect: float
    sd: float
    df: int
    adjustment: Adjustment = Adjustment.NONE
    bounded_below: bool = True
    bounded_above: bool = True


class DisturbedLayout:
    """Values of treatments in blocks, with the disturbance of each value.

    A difference is estimated in the first of these ways that the values allow:

    1. No value is disturbed: a two-way layout.
    2. Slopes leave MIN_DF degrees of freedom: a slope of the disturbance for each treatment is
    taken out.
    3. The undisturbed values determine the difference: the disturbed ones are left out.
    4. All values count as they are. Their noise is that of these values alone, unless it was higher
       before. A disturbance lowers a value, so the treatment that was disturbed more often is not
       bounded above, and the other one, compared with it, not below.

    Args:
        values: Shape (treatments, blocks); NaN where a treatment has no value.
        disturbance: Of each value, same shape, 0 where there is none; None: none at all.
        prior: The noise of earlier values; None: unknown.
    """

    def __init__(
        self, values: Floats, disturbance: Floats | None = None, prior: Noise | None = None
    ) -> None:
        self._values = values
        self._prior = prior
        present = ~np.isnan(values)
        is_disturbed = disturbance is not None and bool(np.any(disturbance[present] > 0))
        self._disturbance = disturbance if is_disturbed else None

    @property
    def noise(self) -> Noise:
        """The noise of one value, without earlier values."""
        return (self._adjusted or self._plain).noise

    def contrast(self, treatment: int, reference: int) -> Contrast:
        """Return the difference of two treatments.

        Args:
            treatment: Row of the treatment.
            reference: Row of the treatment that it is compared with.
        """
        if self._disturbance is None:
            return self._of(self._plain, treatment, reference, Adjustment.NONE)
        ways = ((self._adjusted, Adjustment.SLOPES), (self._undisturbed, Adjustment.LEFT_OUT))
        for layout, adjustment in ways:
            if layout is not None:
                contrast = self._of(layout, treatment, reference, adjustment)
                if math.isfinite(contrast.effect):
                    return contrast
        return self._as_they_are(treatment, reference, self._disturbance)

    def _as_they_are(self, treatment: int, reference: int, disturbance: Floats) -> Contrast:
        effect, variance = self._plain.difference(treatment, reference)
        noise = self._plain.noise
        if self._prior is None or not noise.df or noise.sd <= self._prior.sd:
            noise = noise.with_prior(self._prior)
        times, reference_times = (
            int(np.sum(disturbance[row] > 0)) for row in (treatment, reference)
        )
        return Contrast(
            effect,
            noise.sd * math.sqrt(variance),
            noise.df,
            Adjustment.OPEN_BOUNDS,
            bounded_below=times >= reference_times,
            bounded_above=times <= reference_times,
        )

    def _of(
        self, layout: TwoWayLayout, treatment: int, reference: int, adjustment: Adjustment
    ) -> Contrast:
        effect, variance = layout.difference(treatment, reference)
        noise = layout.noise.with_prior(self._prior)
        return Contrast(effect, noise.sd * math.sqrt(variance), noise.df, adjustment)

    @cached_property
    def _plain(self) -> TwoWayLayout:
        return TwoWayLayout.fit(self._values)

    @cached_property
    def _adjusted(self) -> TwoWayLayout | None:
        """The layout with slopes; None if they leave too few degrees of freedom, or nothing was
        disturbed.
        """
        if self._disturbance is None:
            return None
        layout = TwoWayLayout.fit(self._values, self._disturbance)
        return layout if layout.noise.df >= MIN_DF else None

    @cached_property
    def _undisturbed(self) -> TwoWayLayout | None:
        """The layout of the undisturbed values; None if there is none."""
        if self._disturbance is None:
            return None
        values = np.where(self._disturbance > 0, math.nan, self._values)
        return None if np.isnan(values).all() else TwoWayLayout.fit(values)


def _design(present: Bools) -> Floats:
    """Return a row for each value that is present, with ones for its treatment and its block."""
    treatment, block = np.nonzero(present)
    rows = np.arange(len(treatment))
    design = np.zeros((len(treatment), sum(present.shape)))
    design[rows, treatment] = design[rows, present.shape[0] + block] = 1.0
    return design


def _slopes(covariate: Floats, present: Bools) -> Floats | None:
    """Return a column for each treatment with a covariate above the minimum; None if there is
    none.
    """
    beyond = np.where(present, covariate, math.nan)
    beyond -= np.nanmin(beyond)
    treatments = np.flatnonzero(np.nansum(beyond, axis=1) > 0)
    if not len(treatments):
        return None
    covariates = beyond[present]
    rows = np.nonzero(present)[0]  # the treatment of each value
    return np.stack(
        [np.where(rows == treatment, covariates, 0.0) for treatment in treatments], axis=1
    )
