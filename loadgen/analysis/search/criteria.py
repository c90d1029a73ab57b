"""Criteria: what an SLO requires of the requests of a run, as shares and means that have confidence
bounds.

`ttft_p99<500ms` is met exactly if 99 % of the requests have a TTFT below 500 ms, so a limit on a
percentile is a limit on a share. A failed request meets none. Means and gaps between tokens are
those of the requests that succeeded; an SLO that limits nothing else also limits failures
(`slo.required_limits`). A `RatioSample` is what the requests of a run show of a share or a mean.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np

from loadgen.analysis.request_latencies import Gaps, gaps, latency
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Cause, Outcome, cause_of
from loadgen.core.record import Record
from loadgen.errors import BadInput, setting
from loadgen.stats import block_bootstrap
from loadgen.stats.ratio_confidence_interval import deciding_shares, mean_bounds, share_bounds
from loadgen.util.arrays import Floats

LOOKS = 3  # runs at a level whose first run is inconclusive
# Confidence of each bound, so that "met" holds one-sided with 95 % over all LOOKS at a level: the
# normal quantile 1.992 at each look (Pocock, Biometrika 64, 1977), or Student's at the same level.
LOOK_CONFIDENCE = NormalDist().cdf(1.992)
MIN_REQUESTS = 100  # of a run


@dataclass(frozen=True, slots=True)
class RatioSample:
    """A ratio of two sums over the requests of a run, and its threshold. Requests are in the order
    of their due times.

    Attributes:
        numerator: How much of each request is good; for a mean, the sum of its values.
        denominator: How much of each request there is; for a mean, the number of its values. 0 if
            it does not count.
        threshold: The smallest share that meets the criterion; for a mean, the largest mean.
        is_mean: Whether it is a mean, else a share.
        least, greatest: What the numerator may truly be, as the client's stamps are not exact;
            None: they are.
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
        return (
            float(self.numerator.sum() / self.denominator.sum()) if self.denominator.any() else None
        )

    def met(self, in_flight: float) -> bool | None:
        """Tell whether the threshold is met, by a confidence bound, whatever the truth is within
        the client error.

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
        """Return the bounds of the share or the mean that `met` judges by; None if no request
        counts.
        """
        compute = mean_bounds if self.is_mean else share_bounds
        pairs = self._both_ends(
            lambda values, length: compute(values, self.denominator, length, LOOK_CONFIDENCE),
            in_flight,
        )
        return pairs and (pairs[0][0], pairs[1][1])

    def deciding_shares(self, in_flight: float) -> tuple[float, float] | None:
        """Return the shares between which `met` would be None; None if no request counts.

        Not for a mean.
        """
        pairs = self._both_ends(
            lambda values, length: deciding_shares(
                values, self.denominator, length, LOOK_CONFIDENCE, self.threshold
            ),
            in_flight,
        )
        return pairs and (pairs[1][0], pairs[0][1])

    def _both_ends(
        self, compute: Callable[[Floats, int], tuple[float, float]], in_flight: float
    ) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Compute bounds from the least numerators and from the greatest; None if no request
        counts.

        Args:
            compute: Computes bounds from numerators and the length of a block, in requests.
            in_flight: Requests in flight, on average.
        """
        if not self.denominator.any():
            return None
        residuals = (
            self.numerator - self.numerator.sum() / self.denominator.sum() * self.denominator
        )
        length = block_bootstrap.block_length(len(residuals), in_flight, residuals)
        least, greatest = self._ends
        of_least = compute(least, length)
        return of_least, of_least if np.array_equal(greatest, least) else compute(greatest, length)

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        least = self.numerator if self.least is None else self.least
        return least, self.numerator if self.greatest is None else self.greatest


class Criterion(Protocol):
    """A requirement on the requests of a run.

    Attributes:
        text: As the user wrote it.
    """

    @property
    def text(self) -> str: ...  # noqa: D102

    @property
    def min_requests(self) -> int:
        """Requests of a run: twice as many as show that it is met if all of them are good
        (Wilson's bound).
        """

    def sample(self, records: Sequence[Record], settings: RunSettings) -> RatioSample:
        """Return what the requests of a run show of the criterion.

        Args:
            records: In the order of their due times.
            settings: The settings of the run.
        """


@dataclass(frozen=True, slots=True)
class RequestShare:
    """A share of the requests must be good: succeed and meet every limit.

    Attributes:
        text: As the user wrote it.
        limits: On a request's latencies; without any, the request need only succeed.
        attainment: The share that must be good: 0.99 for limits at the 99th percentile.
    """

    text: str
    limits: tuple[slo.Limit, ...]
    attainment: float

    @property
    def min_requests(self) -> int:
        """As `Criterion.min_requests`."""
        return _min_requests(self.attainment)

    def sample(self, records: Sequence[Record], settings: RunSettings) -> RatioSample:
        """As `Criterion.sample`: the number of good requests by the number of requests."""
        rows = [self._judge(record, settings) for record in records]
        good, least, greatest = np.array(rows, dtype=float).reshape(-1, 3).T
        return RatioSample(
            good, np.ones(len(good)), self.attainment, least=least, greatest=greatest
        )

    def is_good(self, record: Record, settings: RunSettings) -> bool:
        """Tell whether a request that has ended succeeded and met its limits; one of a single token
        has no TPOT.

        A request that the client failed to send is no failure of the server, so it is bad only if
        latencies are limited.
        """
        return self._judge(record, settings)[0]

    def _judge(self, record: Record, settings: RunSettings) -> tuple[bool, bool, bool]:
        """Return whether a request is good; whether it surely is, and whether it may be, within
        the client error.
        """
        if record.outcome is not Outcome.OK:
            good = not self.limits and cause_of(record.outcome) is Cause.CLIENT
            return good, good, good
        values = [(limit, latency(record, limit.metric, settings)) for limit in self.limits]
        measured = [
            (limit, value) for limit, value in values if value is not None or limit.metric != "tpot"
        ]
        if any(value is None for _, value in measured):
            return False, False, False
        good, surely, maybe = (
            all(limit.met_by(getattr(value, end)) for limit, value in measured)
            for end in ("ms", "greatest_ms", "least_ms")
        )
        return good, surely, maybe


@dataclass(frozen=True, slots=True)
class LimitCriterion:
    """A requirement that is a single limit.

    Attributes:
        limit: The limit.
    """

    limit: slo.Limit

    @property
    def text(self) -> str:
        """The limit as the user wrote it."""
        return self.limit.text


class GapShare(LimitCriterion):
    """A share of all gaps between tokens, or between events with tokens, must be within a limit:
    its percentile.
    """

    @property
    def min_requests(self) -> int:
        """As `Criterion.min_requests`; the gaps of a request count as one request."""
        return _min_requests(self._share)

    @property
    def _share(self) -> float:
        assert self.limit.percentile is not None
        return self.limit.percentile / 100

    def sample(self, records: Sequence[Record], settings: RunSettings) -> RatioSample:
        """As `Criterion.sample`: the number of gaps within the limit by the number of gaps."""
        within = np.less_equal if self.limit.inclusive else np.less
        gaps_of_requests = [gaps(record, self.limit.metric) for record in records]

        def good(end: str) -> Floats:
            threshold = self.limit.threshold
            counts = [
                float(request_gaps.repeats[within(getattr(request_gaps, end), threshold)].sum())
                for request_gaps in gaps_of_requests
            ]
            return np.array(counts)

        total = np.array([float(request_gaps.repeats.sum()) for request_gaps in gaps_of_requests])
        return RatioSample(
            good("ms"), total, self._share, least=good("greatest_ms"), greatest=good("least_ms")
        )


class MeanLimit(LimitCriterion):
    """A mean over requests, or over all gaps, must be within a limit."""

    min_requests = MIN_REQUESTS

    def sample(self, records: Sequence[Record], settings: RunSettings) -> RatioSample:
        """As `Criterion.sample`: the sum of the values by their number."""
        values_of_requests = [self._values(record, settings) for record in records]
        sums, least, greatest = (
            np.array(
                [
                    float((getattr(values, end) * values.repeats).sum())
                    for values in values_of_requests
                ]
            )
            for end in ("ms", "least_ms", "greatest_ms")
        )
        counts = np.array([float(values.repeats.sum()) for values in values_of_requests])
        return RatioSample(
            sums, counts, self.limit.threshold, is_mean=True, least=least, greatest=greatest
        )

    def _values(self, record: Record, settings: RunSettings) -> Gaps:
        """Return the values of a request in the form of gaps: those of a latency are one, or
        none.
        """
        if self.limit.metric in slo.GAPS:
            return gaps(record, self.limit.metric)
        value = (
            latency(record, self.limit.metric, settings) if record.outcome is Outcome.OK else None
        )
        return (
            Gaps(*(np.array([number]) for number in (*value, 1.0)))
            if value
            else Gaps(*(np.empty(0),) * 4)
        )


def separate_criteria(text: str) -> tuple[Criterion, ...]:
    """Return one criterion for each limit of an SLO, at whatever percentiles (`loadgen search`).

    Raises:
        BadInput: A limit cannot be shown to be met.
    """
    criteria: list[Criterion] = []
    for limit in slo.required_limits(text):
        if why := _why_undecidable(limit):
            raise BadInput(setting.slo, f"{limit.text!r}: {why[0]}", why[1])
        if limit.metric == "error":
            criteria.append(RequestShare(limit.text, (), 1 - limit.threshold))
        elif limit.percentile is None:
            criteria.append(MeanLimit(limit))
        elif limit.metric in slo.GAPS:
            criteria.append(GapShare(limit))
        else:
            criteria.append(RequestShare(limit.text, (limit,), limit.percentile / 100))
    return tuple(criteria)


def joint_criterion(text: str) -> RequestShare:
    """Return one criterion for all limits of an SLO, as goodput is defined: a request is good if it
    meets all of them.

    All latencies are limited at one percentile, which is the share of requests that must be good. A
    failed request is not good, so a limit on failures must allow as many as the share does, or
    more. Alone, it is the share.

    Args:
        text: For example `ttft_p99<500ms,tpot_p99<50ms,error_rate<1%`.

    Raises:
        BadInput: A limit is not equivalent to a share of requests.
    """
    limits = slo.parse(text)
    for limit in limits:
        if why := _why_not_per_request(limit):
            raise BadInput("slo", f"{limit.text!r} cannot be a limit of goodput: {why[0]}", why[1])
    latencies = tuple(limit for limit in limits if limit.percentile is not None)
    percentiles = sorted({limit.percentile for limit in latencies if limit.percentile is not None})
    if len(percentiles) > 1:
        problem = (
            f"limits at p{percentiles[0]:g} and p{percentiles[-1]:g}, but goodput has a "
            "single share"
        )
        raise BadInput("slo", problem, "give all latencies the same percentile")
    failures = [limit for limit in limits if limit.percentile is None]
    min_share = 1 - min((limit.threshold for limit in failures), default=1.0)
    attainment = percentiles[0] / 100 if percentiles else min_share
    if min_share > attainment + 1e-9:
        problem = f"{failures[0].text!r} is stricter than the percentile {percentiles[0]:g}"
        raise BadInput(
            "slo",
            problem,
            f"give latencies the percentile {100 * min_share:g}, or allow more failures",
        )
    return RequestShare(text, latencies, attainment)


def _why_undecidable(limit: slo.Limit) -> tuple[str, str] | None:
    if limit.metric == "error":
        return (
            None
            if 0 < limit.threshold < 1
            else ("no number of requests can show this", "write error_rate<1%")
        )
    if limit.statistic == "max":
        return "no number of requests can show a maximum", f"write {limit.metric}_p99"
    return (
        ("every request meets it", f"write {limit.metric}_p99") if limit.percentile == 0 else None
    )


def _why_not_per_request(limit: slo.Limit) -> tuple[str, str] | None:
    if limit.metric in slo.GAPS:
        return "a request has many gaps", "limit its tpot or its e2el"
    if limit.statistic == "mean":
        return "a mean is not a share of requests", f"write {limit.metric}_p99"
    return _why_undecidable(limit)


def _min_requests(attainment: float) -> int:
    z = NormalDist().inv_cdf(LOOK_CONFIDENCE)
    return max(MIN_REQUESTS, math.ceil(2 * z * z * attainment / (1 - attainment)))
