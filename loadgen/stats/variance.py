"""Noise: the standard deviation of replicates, estimated from their residuals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from loadgen.util.arrays import Floats


@dataclass(frozen=True, slots=True)
class Noise:
    """An estimate of a standard deviation.

    Attributes:
        sd: The standard deviation; of logarithms, 0.01 is about 1 %. NaN without degrees of freedom.
        df: Degrees of freedom of the estimate.
    """

    sd: float
    df: int

    @classmethod
    def of_two_way_layout(cls, values: Floats) -> Self:
        """Estimate the noise from the residuals of an additive model of treatments and blocks.

        Args:
            values: Shape (treatments, blocks); NaN where a treatment has no value.
        """
        present = ~np.isnan(values)
        if present.all():  # closed form of the same
            residuals = values - values.mean(axis=0) - values.mean(axis=1)[:, None] + values.mean()
            return cls._from_squares(float(np.sum(residuals**2)), (values.shape[0] - 1) * (values.shape[1] - 1))
        treatment, block = np.nonzero(present)
        rows = np.arange(len(treatment))
        design = np.zeros((len(treatment), sum(values.shape)))
        design[rows, treatment] = design[rows, values.shape[0] + block] = 1.0
        observed = values[treatment, block]
        fitted, _, rank, _ = np.linalg.lstsq(design, observed, rcond=None)
        squares = float(np.sum((observed - design @ fitted) ** 2))
        return cls._from_squares(squares, len(treatment) - int(rank))

    @classmethod
    def of_replicates(cls, values: Floats) -> Self:
        """Estimate the noise from replicates of one treatment.

        Args:
            values: Shape (n,), one at least; a single one leaves no degree of freedom.
        """
        residuals = values - values.mean()
        return cls._from_squares(float(np.sum(residuals**2)), len(values) - 1)

    @classmethod
    def pooled(cls, estimates: Sequence["Noise"]) -> Self | None:
        """Pool estimates of the same noise; None if none has a degree of freedom."""
        usable = [noise for noise in estimates if noise.df]
        df = sum(noise.df for noise in usable)
        return cls._from_squares(sum(noise.df * noise.sd**2 for noise in usable), df) if df else None

    @classmethod
    def _from_squares(cls, sum_of_squares: float, df: int) -> Self:
        return cls(math.sqrt(sum_of_squares / df) if df else math.nan, df)
