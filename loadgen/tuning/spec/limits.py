"""Limits: what makes a request of a study good, which share must be, and how finely the highest rate is looked for."""

import math
from dataclasses import dataclass

from loadgen.analysis.search.criteria import Share, undecidable
from loadgen.config import slo
from loadgen.errors import BadInput


def joint(text: str) -> Share:
    """Read `ttft_p99<500ms,tpot_p99<50ms,error_rate<1%` as goodput does: a request is good if it meets every limit.

    All latencies are limited at one percentile, which is the share. A limit on failures goes without saying, since a
    request that fails is not good, and must therefore allow as many as the share does, or more. Alone, it is the share.

    Raises:
        BadInput: No share of requests says the same as one of the limits.
    """
    limits = slo.parse(text)
    for limit in limits:
        if why := _unusable(limit):
            raise BadInput("slo", f"{limit.text!r} is no limit for goodput: {why[0]}", why[1])
    each = tuple(limit for limit in limits if limit.percentile is not None)
    percentiles = sorted({limit.percentile for limit in each if limit.percentile is not None})
    if len(percentiles) > 1:
        problem = f"limits at p{percentiles[0]:g} and p{percentiles[-1]:g}, and goodput has one share"
        raise BadInput("slo", problem, "give all latencies the same percentile")
    failures = [limit for limit in limits if limit.percentile is None]
    least = 1 - min((limit.most for limit in failures), default=1.0)
    attainment = percentiles[0] / 100 if percentiles else least
    if least > attainment + 1e-9:
        problem = f"{failures[0].text!r} is stricter than the percentile {percentiles[0]:g}"
        raise BadInput("slo", problem, f"give latencies the percentile {100 * least:g}, or allow more failures")
    return Share(text, each, attainment)


def _unusable(limit: slo.Limit) -> tuple[str, str] | None:
    """Why a limit says nothing of single requests, and what to write instead; None where it does."""
    if limit.metric in slo.GAPS:
        return "it is on gaps, of which a request has many", "limit its tpot or its e2el"
    if limit.statistic == "mean":
        return "a mean is no share of requests", f"write {limit.metric}_p99"
    return undecidable(limit)


@dataclass(frozen=True, slots=True)
class Effort:
    """How finely the highest rate is looked for, and in how many runs.

    Attributes:
        resolution: The lowest rate that fails is at most this share above the highest that does not.
    """

    resolution: float

    BRACKETING = 2  # runs, where the first rate is near
    SPARE = 8  # runs, for starting far away, and for rates of which the first run does not tell

    @classmethod
    def for_effect(cls, least_effect: float) -> "Effort":
        """As fine as the least effect that a study looks for, within 1 and 5 %.

        A rate is uncertain by its resolution over the root of 12. Requests vary by more than 1 %, so that finer steps
        would tell nothing; and to begin with steps beyond 5 % saves less than a run.
        """
        return cls(min(0.05, max(0.01, least_effect)))

    @property
    def halvings(self) -> int:
        """Rates that are tried between one that meets its limits and its double that does not."""
        return math.ceil(math.log2(math.log(2) / math.log1p(self.resolution)))

    @property
    def min_runs(self) -> int:
        """Where every run tells, and the first rate is near."""
        return self.BRACKETING + self.halvings

    @property
    def max_runs(self) -> int:
        """After these it ends, wherever it is."""
        return self.SPARE + 2 * self.halvings
