"""Noise: the standard deviation of replicates, estimated from their residuals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from loadgen.stats import distributions
from loadgen.util.arrays import Floats

GUARD = 2.5  # noise that is more than this times as high as expected is not the expected noise


@dataclass(frozen=True, slots=True)
class Noise:
    """An estimate of a standard deviation.

    Attributes:
        sd: The standard deviation; of logarithms, 0.01 is about 1 %. NaN without degrees of
            freedom.
        df: Degrees of freedom of the estimate.
    """

    sd: float
    df: int

    @classmethod
    def of_replicates(cls, values: Floats) -> Self:
        """Estimate the noise from replicates of one treatment.

        Args:
            values: Shape (n,), one at least; a single one leaves no degree of freedom.
        """
        residuals = values - values.mean()
        return cls.from_squares(float(np.sum(residuals**2)), len(values) - 1)

    @classmethod
    def of_layout(cls, values: Floats) -> Self:
        """Estimate the noise of a two-way layout: a value is the sum of its treatment's level, its
        block's level, and noise. Levels are fitted by least squares.

        Args:
            values: Shape (treatments, blocks); NaN where a treatment has no value.
        """
        present = ~np.isnan(values)
        treatment, block = np.nonzero(present)
        rows = np.arange(len(treatment))
        design = np.zeros((len(treatment), sum(present.shape)))
        design[rows, treatment] = design[rows, present.shape[0] + block] = 1.0
        observed: Floats = values[present]
        levels, _, rank, _ = np.linalg.lstsq(design, observed, rcond=None)
        residuals = observed - design @ levels
        return cls.from_squares(float(residuals @ residuals), len(observed) - int(rank))

    @classmethod
    def pooled(cls, estimates: Sequence["Noise"]) -> Self | None:
        """Pool estimates of the same noise; None if none has a degree of freedom."""
        usable = [noise for noise in estimates if noise.df]
        df = sum(noise.df for noise in usable)
        return cls.from_squares(sum(noise.df * noise.sd**2 for noise in usable), df) if df else None

    def with_prior(self, prior: "Noise | None") -> "Noise":
        """Pool this estimate with one from earlier measurements.

        If it is more than GUARD times as high as that, it stands alone. To know that the noise is
        not lower than before is then worth one degree of freedom, since an estimate from few values
        is mostly wrong by being too low.

        Args:
            prior: The noise that is expected; None: unknown.
        """
        if prior is None or not prior.df:
            return self
        if self.df and self.sd > GUARD * prior.sd:
            return Noise(self.sd, self.df + 1)
        return Noise.pooled([self, prior]) or self

    def upper_bound(self, confidence: float) -> float:
        """Return the upper confidence bound of the standard deviation; NaN without degrees of
        freedom.
        """
        return (
            self.sd
            * math.sqrt(self.df / distributions.chi_square_quantile(1 - confidence, self.df))
            if self.df
            else math.nan
        )

    @classmethod
    def from_squares(cls, sum_of_squares: float, df: int) -> Self:
        """Estimate the noise from a sum of squared residuals with `df` degrees of freedom."""
        return cls(math.sqrt(sum_of_squares / df) if df else math.nan, df)
