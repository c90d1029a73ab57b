"""The limits of goodput: what makes a request good, the share that must be good, and the resolution of the search."""

import math
from dataclasses import dataclass

from loadgen.analysis.search.criteria import Share, undecidable
from loadgen.config import slo
from loadgen.errors import BadInput


def joint(text: str) -> Share:
    """Read `ttft_p99<500ms,tpot_p99<50ms,error_rate<1%` as one share of requests that must meet every limit.

    All latencies have the same percentile, which is the share. A failed request is not good, so a limit on failures
    must allow at least as many as the share does. Alone, it is the share.

    Raises:
        BadInput: A limit cannot be expressed as a share of requests.
    """
    limits = slo.parse(text)
    for limit in limits:
        if why := _unusable(limit):
            raise BadInput("slo", f"{limit.text!r} is not a limit for goodput: {why[0]}", why[1])
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
    """Return why a limit does not apply to single requests, and what to write instead; None: it applies."""
    if limit.metric in slo.GAPS:
        return "it limits gaps, and a request has many of them", "limit tpot or e2el"
    if limit.statistic == "mean":
        return "a mean is not a share of requests", f"write {limit.metric}_p99"
    return undecidable(limit)


@dataclass(frozen=True, slots=True)
class Effort:
    """Resolution of the search for the highest rate, and its number of runs.

    Attributes:
        resolution: Maximum distance of the lowest rate that fails from the highest that does not, a share.
    """

    resolution: float

    BRACKETING = 2  # runs, if the first rate is close
    SPARE = 8  # runs, for a distant first rate and for rates whose first run is inconclusive

    @classmethod
    def for_effect(cls, least_effect: float) -> "Effort":
        """Choose the resolution for the least effect that a study looks for, within 1 and 5 %.

        The standard error of a rate is its resolution over the root of 12. Requests vary by more than 1 %, so finer
        steps show nothing; steps above 5 % save less than one run.
        """
        return cls(min(0.05, max(0.01, least_effect)))

    @property
    def halvings(self) -> int:
        """Number of rates to try between one that meets its limits and its double that does not."""
        return math.ceil(math.log2(math.log(2) / math.log1p(self.resolution)))

    @property
    def min_runs(self) -> int:
        """Number of runs if every run is conclusive and the first rate is close."""
        return self.BRACKETING + self.halvings

    @property
    def max_runs(self) -> int:
        """Number of runs after which the search ends in any case."""
        return self.SPARE + 2 * self.halvings
