"""ConfidenceInterval of the difference between two sides, and the sources of noise that it is computed from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from loadgen.analysis.compare.metrics import Metric
from loadgen.analysis.compare.run_requests import RunRequests
from loadgen.stats import block_bootstrap, distributions
from loadgen.stats.variance import Noise
from loadgen.util.arrays import Floats

CONFIDENCE = 0.95


class Basis(StrEnum):
    """The source of the noise."""

    STARTS = "starts"  # the variation between the starts of each side
    NOISE = "noise"  # the same, pooled with a noise file
    WITHIN = "within the run"  # the variation between requests: the variation between starts is unknown


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """Student's interval of a difference, in logarithms or shares (`Side.scaled_values`).

    Attributes:
        low: Lower bound; both bounds hold together with CONFIDENCE.
        high: Upper bound.
        basis: The source of the noise.
        p_value: Two-sided, of no difference.
    """

    low: float
    high: float
    basis: Basis
    p_value: float

    @classmethod
    def of(cls, difference: float, error: float, df: float, basis: Basis) -> "ConfidenceInterval":
        """Return the interval of a difference by its standard error and degrees of freedom."""
        half_width = distributions.student_two_sided_quantile(1 - CONFIDENCE, df) * error
        t = abs(difference) / error if error else math.inf if difference else 0.0
        return cls(difference - half_width, difference + half_width, basis, distributions.student_two_sided_p(t, df))

    @property
    def excludes_zero(self) -> bool:
        """Whether the difference is significant by this interval alone."""
        return self.low > 0 or self.high < 0


def rounding_error(baseline: float, candidate: float) -> float:
    """Return the standard error of a difference of two values in ranges of these widths (JCGM 100:2008, F.2.2.1)."""
    return math.sqrt((baseline * baseline + candidate * candidate) / 12)


def interval_by_starts(
    baseline: Floats, candidate: Floats, kept: Noise | None = None, rounding: float = 0.0
) -> ConfidenceInterval:
    """Return the interval by the variation between starts, taken to be of the same size on both sides.

    Args:
        baseline: Scaled values of the starts, shape (n,).
        candidate: Scaled values of the starts, shape (m,).
        kept: Noise of a noise file, which is pooled with that of the starts. Without it some side has two starts.
        rounding: Rounding error of the difference.
    """
    own = [Noise.of_replicates(values) for values in (baseline, candidate)]
    noise = Noise.pooled(own if kept is None else [kept, *own])
    assert noise is not None
    error = math.hypot(noise.sd * math.sqrt(1 / len(baseline) + 1 / len(candidate)), rounding)
    basis = Basis.STARTS if kept is None else Basis.NOISE
    return ConfidenceInterval.of(float(candidate.mean() - baseline.mean()), error, noise.df, basis)


def interval_within_run(
    baseline: Sequence[RunRequests],
    candidate: Sequence[RunRequests],
    metric: Metric,
    difference: float,
    length: int,
    rounding: float = 0.0,
) -> ConfidenceInterval | None:
    """Return the interval by the variation between requests; None if they are too few for the metric.

    Args:
        baseline: The runs of the baseline.
        candidate: The runs of the candidate.
        metric: That is compared.
        difference: Candidate minus baseline, in scaled values.
        length: The length of a block, in requests.
        rounding: Rounding error of the difference.
    """
    replicates = [_resample_side(runs, metric, length) for runs in (baseline, candidate)]
    if replicates[0] is None or replicates[1] is None:
        return None
    count = min(run.count for run in (*baseline, *candidate))
    error, df = block_bootstrap.standard_error(replicates[1] - replicates[0], count, length)
    if not math.isfinite(error):
        return None
    return ConfidenceInterval.of(difference, math.hypot(error, rounding), df, Basis.WITHIN)


def _resample_side(runs: Sequence[RunRequests], metric: Metric, length: int) -> Floats | None:
    replicates = [run.resample(metric, length, seed) for seed, run in enumerate(runs)]
    known = [each for each in replicates if each is not None]
    if len(known) < len(replicates):
        return None
    values = np.array(known)
    if not metric.is_share:
        if not (values > 0).all():  # false for NaN too
            return None
        values = np.log(values)
    mean: Floats = values.mean(axis=0)
    return mean
