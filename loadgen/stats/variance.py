"""Noise: what runs of one and the same thing differ by."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from loadgen.util.arrays import Floats


@dataclass(frozen=True, slots=True)
class Noise:
    """The standard deviation of one run's logarithm, about 0.01 for 1 %, and its degrees of freedom."""

    sd: float
    df: int

    @classmethod
    def of(cls, values: Floats) -> Self:
        """What an additive model of arms and blocks leaves.

        Args:
            values: Logarithms, shape (arms, blocks); NaN where an arm had no run.
        """
        there = ~np.isnan(values)
        if there.all():  # the same in closed form
            left = values - values.mean(axis=0) - values.mean(axis=1)[:, None] + values.mean()
            return cls._from(float(np.sum(left**2)), (values.shape[0] - 1) * (values.shape[1] - 1))
        arm, block = np.nonzero(there)
        rows = np.arange(len(arm))
        design = np.zeros((len(arm), sum(values.shape)))
        design[rows, arm] = design[rows, values.shape[0] + block] = 1.0
        observed = values[arm, block]
        fitted, _, rank, _ = np.linalg.lstsq(design, observed, rcond=None)
        return cls._from(float(np.sum((observed - design @ fitted) ** 2)), len(arm) - int(rank))

    @classmethod
    def of_replicates(cls, values: Floats) -> Self:
        """What runs of one arm differ by, blocks and all.

        Args:
            values: Logarithms, shape (runs,), one at least, which tells nothing by itself.
        """
        left = values - values.mean()
        return cls._from(float(np.sum(left**2)), len(values) - 1)

    @classmethod
    def pooled(cls, each: Sequence["Noise"]) -> Self | None:
        """What several tell together; None where none tells anything."""
        telling = [noise for noise in each if noise.df]
        df = sum(noise.df for noise in telling)
        return cls._from(sum(noise.df * noise.sd**2 for noise in telling), df) if df else None

    @classmethod
    def _from(cls, squares: float, df: int) -> Self:
        return cls(math.sqrt(squares / df) if df else math.nan, df)
