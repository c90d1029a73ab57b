"""Pair: a baseline and a candidate, and the `Row` of each metric: their difference, and the
conclusion about it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from loadgen.analysis.compare.confidence_interval import (
    ConfidenceInterval,
    NoiseFile,
    interval_by_starts,
    interval_within_run,
    rounding_error,
)
from loadgen.analysis.compare.metrics import STATISTICS, Metric, metric_by_name
from loadgen.analysis.compare.run_requests import RunRequests, Scheme
from loadgen.analysis.compare.side import MIN_STARTS, Side
from loadgen.analysis.compare.workload import OWN
from loadgen.stats.batch_means import BatchMeans
from loadgen.stats.block_bootstrap import ROUNDING, BlockBootstrap
from loadgen.util.arrays import Floats
from loadgen.util.number_format import percent

ZERO, CONSTANT = "a value is 0", "no variation was observed"
# Latencies whose mean and median are judged within a run by batch means: each request is a mean
# over its tokens, and the server's steps, which all share, are what they measure.
BATCHED = ("tpot", "icl", "itl")
BATCHED_STATISTICS = ("mean", "p50", "median")
MAX_EXPONENT = 700.0  # above it the exponential overflows
# above it, and above such a difference, latencies are those of a selection of the requests
MAX_ERROR_RATE = 0.01


class Conclusion(StrEnum):
    """The conclusion about a difference."""

    BETTER = "better"  # significant after correction for all rows that are tested
    WORSE = "worse"  # the same
    BETTER_HERE = "better here"  # the same, in these runs: another start may differ
    WORSE_HERE = "worse here"  # the same
    MAYBE = "maybe"  # significant by its own interval only
    NO_SIGNIFICANT_DIFFERENCE = "no significant difference"
    UNKNOWN = "-"  # there is no interval


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of both sides.

    Attributes:
        metric: That is compared.
        baseline: Value of the baseline: the geometric mean of its starts, for shares the arithmetic
            mean.
        candidate: Value of the candidate.
        change: Relative difference of the candidate; for shares the difference. None if only the
            baseline is 0.
        resolution: Width of the range in which a true value lies, as a share of it; 0 if values are
            exact.
        interval: The interval of the difference of scaled values; None if unknown.
        why_no_interval: Why it is unknown; empty if it is known.
        marks: What limits the values: FEW, INEXACT, both or none.
        conclusion: About the difference.
    """

    metric: Metric
    baseline: float
    candidate: float
    change: float | None
    resolution: float
    interval: ConfidenceInterval | None
    why_no_interval: str
    marks: str = ""
    conclusion: Conclusion = Conclusion.UNKNOWN

    @property
    def is_worse(self) -> bool | None:
        """Whether the change is for the worse; None if there is none, or it has no direction."""
        if not self.change or self.metric.more_is_better is None:
            return None
        return (self.change < 0) == self.metric.more_is_better

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Confidence bounds of `change`."""
        if self.interval is None:
            return None
        low, high = (
            as_change(self.interval.low, self.metric),
            as_change(self.interval.high, self.metric),
        )
        return (max(low, -1.0), min(high, 1.0)) if self.metric.is_share else (low, high)


def as_change(difference: float, metric: Metric) -> float:
    """Convert a difference of scaled values to a change; infinite if it overflows."""
    if metric.is_share:
        return difference
    return math.expm1(difference) if difference < MAX_EXPONENT else math.inf


@dataclass(frozen=True)
class Pair:
    """A baseline and a candidate.

    Attributes:
        baseline: The side that the candidate is compared with.
        candidate: The side that is compared.
        noise: The variation between starts, from a file; None: there is no such file.
        read_requests: Reads the records of a side's runs; called only if an interval needs them.
    """

    baseline: Side
    candidate: Side
    noise: NoiseFile | None
    read_requests: Callable[[Side], Sequence[RunRequests]]

    @property
    def sides(self) -> tuple[Side, Side]:
        """The baseline and the candidate."""
        return self.baseline, self.candidate

    @property
    def error_rates_differ(self) -> str:
        """Error rates of both sides as text, if they differ too much to compare latencies; else
        empty.
        """
        rates = [side.error_rate for side in self.sides]
        if rates[0] is None or rates[1] is None or abs(rates[1] - rates[0]) <= MAX_ERROR_RATE:
            return ""
        base, other = (percent(rate, 1) for rate in rates)
        return (
            f"{base} of the requests of {self.baseline.name} failed, {other} of those of "
            f"{self.candidate.name}"
        )

    @cached_property
    def block_length(self) -> int | None:
        """Block length for every run of both sides, in requests; None if some run has no
        records.
        """
        runs = [run for side in self.sides for run in self.read_requests(side)]
        complete = len(runs) == sum(len(side.starts) for side in self.sides)
        return max(run.block_length for run in runs) if complete else None

    def row(self, metric: Metric) -> Row | None:
        """Compare a metric; return None if a run does not have it."""
        base, other = (side.scaled_values(metric) for side in self.sides)
        if base is None or other is None:
            return None
        baseline, candidate = (
            float(values.mean() if metric.is_share else np.exp(values.mean()))
            for values in (base, other)
        )
        if not (np.isfinite(base).all() and np.isfinite(other).all()):  # the logarithm of a 0
            ratio = candidate / baseline - 1 if baseline else None if candidate else 0.0
            return Row(metric, baseline, candidate, ratio, 0.0, None, ZERO)
        resolutions = [side.resolution(metric) for side in self.sides]
        outcome = self._interval(metric, base, other, rounding_error(*resolutions))
        if isinstance(outcome, ConfidenceInterval) and outcome.low == outcome.high:
            # a run without an error does not show that there never is one
            outcome = CONSTANT
        interval, why = (None, outcome) if isinstance(outcome, str) else (outcome, "")
        change = as_change(float(other.mean() - base.mean()), metric)
        marks = "".join(sorted({*self.baseline.marks(metric), *self.candidate.marks(metric)}))
        return Row(metric, baseline, candidate, change, max(resolutions), interval, why, marks)

    def multiple_of(self, metric: Metric) -> Metric | None:
        """Return the metric that this one equals, or is a fixed multiple of in another unit, in
        every run; or None.

        A latency repeats another one if all its STATISTICS do.
        """
        statistics = (
            [Metric.of_latency(metric.latency, name) for name in STATISTICS]
            if metric.latency
            else [metric]
        )
        repeated = all(map(self._is_multiple, statistics))
        return metric_by_name(metric.may_repeat) if repeated else None

    def _is_multiple(self, metric: Metric) -> bool:
        first = metric_by_name(metric.may_repeat)
        if first is None:
            return False
        log_ratios: list[float] = []
        for side in self.sides:
            values, other = side.scaled_values(first), side.scaled_values(metric)
            if (
                values is None
                or other is None
                or not (np.isfinite(values).all() and np.isfinite(other).all())
            ):
                return False
            log_ratios += (other - values).tolist()
        fixed = 0.0 if metric.unit == first.unit else log_ratios[0]
        return all(abs(log_ratio - fixed) <= ROUNDING for log_ratio in log_ratios)

    def _interval(
        self, metric: Metric, base: Floats, other: Floats, rounding: float
    ) -> ConfidenceInterval | str:
        kept = None if self.noise is None else self.noise.noise.get(metric.name)
        if kept is not None or min(len(base), len(other)) >= MIN_STARTS:
            return interval_by_starts(base, other, kept, rounding)
        if metric.from_server:
            return f"server metrics need {MIN_STARTS} starts of each side"
        if self.block_length is None:
            return self._missing_records()
        baseline, candidate = map(self.read_requests, self.sides)
        runs = (*baseline, *candidate)
        scheme: Scheme = BlockBootstrap(self.block_length)
        if metric.latency in BATCHED and metric.statistic in BATCHED_STATISTICS:
            scheme = BatchMeans(max(run.batch_length for run in runs))
        for run in runs:
            if why := run.too_short_for(scheme.length):
                return why
        difference = float(other.mean() - base.mean())
        interval = interval_within_run(baseline, candidate, metric, difference, scheme, rounding)
        if interval is not None:
            return interval
        is_kept = all(run.keeps(metric) for run in runs)
        return "too few values" if is_kept else self._missing_records()

    def _missing_records(self) -> str:
        runs = [run for side in self.sides for run in side.starts]
        if foreign := next((run.requests_missing for run in runs if run.requests_missing), ""):
            return foreign
        lacking = [run for run in runs if run.tool == OWN and run.records is None]
        kept = [run.records_setting for run in lacking if run.records_setting is not None]
        if len(kept) == len(lacking):
            return f"give the records instead of the result: {', '.join(kept)}"
        return "measure with --records"
