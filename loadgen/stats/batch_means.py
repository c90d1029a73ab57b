"""Batch means: the error of a ratio of sums over a series of dependent observations, from its
parts.

The series is cut into parts in the order of time, and their ratios are taken to be independent
(Schmeiser, Oper. Res. 30, 1982). The parts are as few and as long as a t-interval allows. They are
not cut by the autocorrelation of the series: that keeps the short series whose autocorrelation
happens to look small, for which intervals are too narrow.

A drift as slow as the run itself is not seen, so such an interval is one of these runs, not of the
server. `tests/slow/statistics/test_batch_means.py` measures how often intervals hold.
"""

import math
from dataclasses import dataclass

import numpy as np

from loadgen.util.arrays import Floats

BATCHES = 5


@dataclass(frozen=True, slots=True)
class BatchMeans:
    """Replicates of a ratio, one for each part of the series.

    Attributes:
        length: The least length of a part, in observations.
    """

    length: int

    def ratios(self, numerator: Floats, denominator: Floats, seed: int) -> Floats:
        """Return a replicate for each part: the ratio of the series, and so much of the deviation
        of the part from it that replicates vary by the standard error of the ratio.

        Args:
            numerator: The numerator of each observation, shape (n,), BATCHES or more.
            denominator: The denominator of each observation, shape (n,).
            seed: Not used: nothing is drawn.

        Returns:
            Shape (BATCHES,); NaN where the denominators sum to 0.
        """
        begins = np.arange(BATCHES) * len(numerator) // BATCHES
        sums, counts = (np.add.reduceat(values, begins) for values in (numerator, denominator))
        of_parts = np.divide(sums, counts, out=np.full(BATCHES, math.nan), where=counts > 0)
        ratio = numerator.sum() / denominator.sum() if denominator.sum() else math.nan
        replicates: Floats = ratio + (of_parts - ratio) / math.sqrt(BATCHES)
        return replicates

    def is_enough(
        self, count: float, independent_variance: float, replicates: Floats, least: int
    ) -> bool:
        """Return True: `BatchMeans` are made only of runs that are long enough for their parts."""
        return True

    def standard_error(self, replicates: Floats, count: float) -> tuple[float, float]:
        """Return the standard error of a statistic and its degrees of freedom (Student's).

        Args:
            replicates: The replicates of the statistic, shape (BATCHES,).
            count: Not used: the number of observations.
        """
        return float(replicates.std(ddof=1)), BATCHES - 1
