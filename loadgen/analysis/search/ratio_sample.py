"""RatioSample: what the requests of a run show of a share or a mean that has a limit."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from loadgen.stats import block_bootstrap
from loadgen.stats.ratio_confidence_interval import deciding_shares, mean_bounds, share_bounds
from loadgen.util.arrays import Floats

LOOKS = 3  # runs at a level whose first run is inconclusive
# Confidence of each bound, so that "met" holds one-sided with 95 % over all LOOKS at a level: the normal quantile 1.992
# at each look (Pocock, Biometrika 64, 1977), or Student's at the same level.
LOOK_CONFIDENCE = NormalDist().cdf(1.992)


@dataclass(frozen=True, slots=True)
class RatioSample:
    """A ratio of two sums over the requests of a run, and its threshold. Requests are in the order of their due times.

    Attributes:
        numerator: How much of each request is good; for a mean, the sum of its values.
        denominator: How much of each request there is; for a mean, the number of its values. 0 if it does not count.
        threshold: The smallest share that meets the criterion; for a mean, the largest mean.
        is_mean: Whether it is a mean, else a share.
        least, greatest: What the numerator may truly be, as the client's stamps are not exact; None: they are.
    """

    numerator: Floats
    denominator: Floats
    threshold: float
    is_mean: bool = False
    least: Floats | None = None
    greatest: Floats | None = None

    def __add__(self, other: "RatioSample") -> "RatioSample":
        numerator, denominator, least, greatest = (
            np.concatenate(pair)
            for pair in zip(
                (self.numerator, self.denominator, *self._ends),
                (other.numerator, other.denominator, *other._ends),
                strict=True,
            )
        )
        return RatioSample(numerator, denominator, self.threshold, self.is_mean, least, greatest)

    @property
    def value(self) -> float | None:
        """The share or the mean; None if no request counts."""
        return float(self.numerator.sum() / self.denominator.sum()) if self.denominator.any() else None

    def met(self, in_flight: float) -> bool | None:
        """Tell whether the threshold is met, by a confidence bound, whatever the truth is within the client error.

        None: the requests are too few to tell, or the client error is too large.

        Args:
            in_flight: Requests in flight, on average.
        """
        bounds = self.bounds(in_flight)
        if bounds is None:
            return None
        low, high = bounds
        if self.is_mean:
            return True if high <= self.threshold else False if low > self.threshold else None
        return True if low >= self.threshold else False if high < self.threshold else None

    def bounds(self, in_flight: float) -> tuple[float, float] | None:
        """Return the bounds of the share or the mean that `met` judges by; None if no request counts."""
        compute = mean_bounds if self.is_mean else share_bounds
        pairs = self._both_ends(
            lambda values, length: compute(values, self.denominator, length, LOOK_CONFIDENCE), in_flight
        )
        return pairs and (pairs[0][0], pairs[1][1])

    def deciding_shares(self, in_flight: float) -> tuple[float, float] | None:
        """Return the shares between which `met` would be None; None if no request counts. Not for a mean."""
        pairs = self._both_ends(
            lambda values, length: deciding_shares(values, self.denominator, length, LOOK_CONFIDENCE, self.threshold),
            in_flight,
        )
        return pairs and (pairs[1][0], pairs[0][1])

    def _both_ends(
        self, compute: Callable[[Floats, int], tuple[float, float]], in_flight: float
    ) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Compute bounds from the least numerators and from the greatest; None if no request counts.

        Args:
            compute: Computes bounds from numerators and the length of a block, in requests.
            in_flight: Requests in flight, on average.
        """
        if not self.denominator.any():
            return None
        residuals = self.numerator - self.numerator.sum() / self.denominator.sum() * self.denominator
        length = block_bootstrap.block_length(len(residuals), in_flight, residuals)
        least, greatest = self._ends
        of_least = compute(least, length)
        return of_least, of_least if np.array_equal(greatest, least) else compute(greatest, length)

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        least = self.numerator if self.least is None else self.least
        return least, self.numerator if self.greatest is None else self.greatest
