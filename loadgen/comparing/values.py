"""Values: all values of a latency in a run, each with the request that it is of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadgen import blocks
from loadgen.confidence import least_samples
from loadgen.schedule import Floats, Int64s

FEWEST = 100  # independent values, for anything that is said of them
ROUNDING = 1e-12  # a share that is no difference


@dataclass(frozen=True, slots=True)
class Values:
    """Ascending values, ms, shape (m,).

    Attributes:
        ms: They.
        times: How often each is there.
        owner: The number of the request that each is of.
        requests: How many there are, those without a value included.
    """

    ms: Floats
    times: Floats
    owner: Int64s
    requests: int

    @classmethod
    def of(cls, each: Sequence[tuple[Floats, Floats]]) -> "Values":
        """Put together what each request has: its values, and how often each is there."""
        owner = np.repeat(np.arange(len(each)), [len(ms) for ms, _ in each])
        ms, times = (np.concatenate([np.empty(0), *(pair[column] for pair in each)]) for column in (0, 1))
        order = np.argsort(ms, kind="stable")
        return cls(ms[order], times[order], owner[order], len(each))

    @property
    def means(self) -> Floats:
        """Of each request the mean of its values; NaN where it has none."""
        total, count = self._sums(self.times * self.ms), self._sums(self.times)
        means: Floats = np.divide(total, count, out=np.full(self.requests, math.nan), where=count > 0)
        return means

    def mean(self, length: int, seed: int) -> Floats | None:
        """The means of runs drawn anew, as `blocks.ratios`; None where the values are too few to tell them."""
        total, count = self._sums(self.times * self.ms), self._sums(self.times)
        means = blocks.ratios(total, count, length, seed)
        if np.isnan(means).any():
            return None
        independent = np.square(total - total.sum() / count.sum() * count).sum() / count.sum() ** 2
        return means if _told(float(np.count_nonzero(count)), independent, means) >= FEWEST else None

    def percentile(self, p: float, length: int, seed: int) -> Floats | None:
        """The `p`-th percentiles of runs drawn anew; None where the values are too few to tell them.

        What is drawn anew is the share of values up to the percentile; a percentile follows from how far that share is
        from the run's own (Woodruff, J. Am. Stat. Assoc. 47, 1952), so values are sorted once.
        """
        count = float(self.times.sum())
        if not 0 < p < 100 or count < least_samples(p):
            return None
        within = (self.ms <= self._at(np.array([p / 100]))[0]) * self.times
        shares = blocks.ratios(self._sums(within), self._sums(self.times), length, seed)
        share = float(within.sum()) / count
        if np.isnan(shares).any() or _told(count, share * (1 - share) / count, shares) < max(FEWEST, least_samples(p)):
            return None
        return self._at(p / 100 + share - shares)

    def _at(self, shares: Floats) -> Floats:
        """The values below which these shares lie, as numpy.percentile defines them."""
        ends = np.cumsum(self.times)
        rank = np.clip(shares, 0, 1) * (ends[-1] - 1)
        low = np.floor(rank)
        below, above = (self.ms[np.searchsorted(ends, each, side="right")] for each in (low, np.ceil(rank)))
        at: Floats = below + (above - below) * (rank - low)
        return at

    def _sums(self, each: Floats) -> Floats:
        """The sum over the values of each request."""
        sums: Floats = np.bincount(self.owner, weights=each, minlength=self.requests).astype(float)
        return sums


def _told(count: float, independent: float, drawn: Floats) -> float:
    """How many independent values would tell as much as these do, which share their fate.

    Args:
        count: Of these.
        independent: What the variance would be, if they were.
        drawn: What they came to in runs drawn anew.
    """
    variance = float(drawn.var())
    if variance <= (ROUNDING * float(drawn.mean())) ** 2:  # where no value differs from another
        return count
    return count * min(1.0, independent / variance)
