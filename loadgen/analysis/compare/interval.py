"""Interval: between which values a difference lies, by what is known of the noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from loadgen.analysis.compare.metrics import Metric
from loadgen.analysis.compare.sample import Sample
from loadgen.stats import block_bootstrap, student_t
from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats

CONFIDENCE = 0.95


class Basis(StrEnum):
    """What tells how sure a difference is."""

    STARTS = "starts"  # what the starts of each side differ by
    NOISE = "noise"  # the same, and what others did that were kept
    WITHIN = "within the run"  # what the requests of the runs differ by: nothing is known of starts


@dataclass(frozen=True, slots=True)
class Interval:
    """Of a difference of levels: logarithms, or shares.

    Attributes:
        low: It is no less than this, with CONFIDENCE.
        high: It is no more than this, likewise.
        basis: What tells.
        by_chance: How likely so great a difference is where there is none.
    """

    low: float
    high: float
    basis: Basis
    by_chance: float

    @classmethod
    def of(cls, difference: float, error: float, df: float, basis: Basis) -> "Interval":
        """Student's, of a difference with this standard error."""
        half = student_t.beyond(1 - CONFIDENCE, df) * error
        t = abs(difference) / error if error else math.inf if difference else 0.0
        return cls(difference - half, difference + half, basis, student_t.by_chance(t, df))

    @property
    def leaves_out_none(self) -> bool:
        """Whether no difference at all is not among what it may be."""
        return self.low > 0 or self.high < 0


def rounding(one: float, other: float) -> float:
    """The standard error of a difference of two levels, each known to so much (JCGM 100:2008, F.2.2.1)."""
    return math.sqrt((one * one + other * other) / 12)


def by_starts(one: Floats, other: Floats, kept: Noise | None = None, rounded: float = 0.0) -> Interval:
    """Of what two sides differ by, by what starts of one thing do: a noise of one size on both sides, as in studies.

    Args:
        one: The levels of a side.
        other: Of the other side, from which the first's are taken.
        kept: A noise that was kept, pooled with that of the starts; without it some side has two starts or more.
        rounded: The `rounding` of their difference.
    """
    own = [Noise.of_replicates(levels) for levels in (one, other)]
    noise = Noise.pooled(own if kept is None else [kept, *own])
    assert noise is not None
    error = math.hypot(noise.sd * math.sqrt(1 / len(one) + 1 / len(other)), rounded)
    basis = Basis.STARTS if kept is None else Basis.NOISE
    return Interval.of(float(other.mean() - one.mean()), error, noise.df, basis)


def within(
    one: Sequence[Sample], other: Sequence[Sample], metric: Metric, difference: float, length: int, rounded: float = 0.0
) -> Interval | None:
    """The same by what requests differ by within the runs; None where they do not tell it of this metric.

    Args:
        one: The runs of a side.
        other: Of the other side.
        metric: What is compared.
        difference: By which the other side's level is above the first's.
        length: Of blocks, in requests.
        rounded: The `rounding` of the difference.
    """
    levels = [_drawn(samples, metric, length) for samples in (one, other)]
    if levels[0] is None or levels[1] is None:
        return None
    count = min(sample.count for sample in (*one, *other))
    error, df = block_bootstrap.standard_error(levels[1] - levels[0], count, length)
    return Interval.of(difference, math.hypot(error, rounded), df, Basis.WITHIN) if math.isfinite(error) else None


def _drawn(samples: Sequence[Sample], metric: Metric, length: int) -> Floats | None:
    """The level of a side, the mean of its runs', in runs drawn anew; shape (block_bootstrap.RESAMPLES,)."""
    drawn = [sample.drawn(metric, length, seed) for seed, sample in enumerate(samples)]
    told = [each for each in drawn if each is not None]
    if len(told) < len(drawn):
        return None
    values = np.array(told)
    if not metric.is_share:
        if not (values > 0).all():  # NaN too
            return None
        values = np.log(values)
    level: Floats = values.mean(axis=0)
    return level
