"""RunRequests: the requests of one run, from which the metrics of the run are resampled.

`LatencyValues` are the values of a latency, summed per request, and their bootstrap replicates.
"""

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.analysis.compare.metrics import ERROR_RATE, LATENCIES, Meaning, Metric, percentiles_of
from loadgen.analysis.request_latencies import gaps, latency
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Cause, Outcome, cause_of
from loadgen.core.record import Record
from loadgen.metrics.records.file import RecordFile
from loadgen.report.result.timeline import RequestSample
from loadgen.stats import block_bootstrap
from loadgen.stats.batch_means import BatchMeans
from loadgen.stats.block_bootstrap import BlockBootstrap
from loadgen.stats.percentile_confidence_interval import least_samples
from loadgen.util.arrays import Floats
from loadgen.util.number_format import to_ms

Scheme = BlockBootstrap | BatchMeans  # how replicates of a metric are made
_OUTCOME_WIDTH = 8


@dataclass(frozen=True, slots=True)
class LatencyValues:
    """The values of a latency; each array has an entry per request, shape (n,).

    Attributes:
        sums: Sum of the request's values, ms.
        counts: Number of its values.
        within: Number of its values up to a percentile of all values, by the percentile.
        distribution: The distribution of all values, ns.
    """

    sums: Floats
    counts: Floats
    within: Mapping[float, Floats]
    distribution: Histogram

    @property
    def means(self) -> Floats:
        """Mean of each request's values, ms; NaN if it has none."""
        means: Floats = np.divide(
            self.sums, self.counts, out=np.full(len(self.counts), math.nan), where=self.counts > 0
        )
        return means

    def resample_mean(self, scheme: Scheme, seed: int) -> Floats | None:
        """Return replicates of the mean, ms; None if the values are too few.

        Args:
            scheme: How the replicates are made.
            seed: The seed of the random numbers.
        """
        means = scheme.ratios(self.sums, self.counts, seed)
        if np.isnan(means).any():
            return None
        count = self.counts.sum()
        independent_variance = (
            np.square(self.sums - self.sums.sum() / count * self.counts).sum() / count**2
        )
        requests = float(np.count_nonzero(self.counts))
        is_enough = scheme.is_enough(requests, independent_variance, means, least=1)
        return means if is_enough else None

    def resample_percentile(self, p: float, scheme: Scheme, seed: int) -> Floats | None:
        """Return replicates of the `p`-th percentile, ms; None if the values are too few.

        The share of values up to the percentile is resampled; the percentile follows from how far
        that share is from the run's own (Woodruff, J. Am. Stat. Assoc. 47, 1952), by the
        distribution of all values.

        Args:
            p: One of the keys of `within`.
            scheme: How the replicates are made.
            seed: The seed of the random numbers.
        """
        count = float(self.counts.sum())
        least = least_samples(p)
        if not 0 < p < 100 or count < least:
            return None
        within = self.within[p]
        shares = scheme.ratios(within, self.counts, seed)
        share = float(within.sum()) / count
        if np.isnan(shares).any():
            return None
        if not scheme.is_enough(count, share * (1 - share) / count, shares, least):
            return None
        at = np.clip(p + 100 * (share - shares), 0, 100)
        return np.array(self.distribution.percentiles(at.tolist()), dtype=float) / 1e6


@dataclass(frozen=True, slots=True)
class EndedRequests:
    """The requests that ended, in the order of their ends, shape (k,).

    Attributes:
        waits_s: Time since the request before it ended, for the first one since any was sent: their
            sum is the duration of the run.
        counts: What each request adds to a throughput, by the name of the metric.
    """

    waits_s: Floats
    counts: dict[str, Floats]


@dataclass(frozen=True)
class RunRequests:
    """The requests of a run, in the order of its schedule.

    Attributes:
        failed: 1 if the server failed the request, else 0, shape (n,).
        counted: 1 if the request counts in the error rate (`Failures`), else 0, shape (n,).
        latencies: The latencies of the requests that ended, by the name of the latency.
        ended: The requests that ended, for throughputs.
        in_flight: Requests due and not ended, on average over the run.
    """

    failed: Floats
    counted: Floats
    latencies: dict[str, LatencyValues]
    ended: EndedRequests
    in_flight: float

    @classmethod
    def read(
        cls,
        path: str,
        histograms: Mapping[str, Histogram],
        metrics: Iterable[Metric],
        meaning: Meaning,
    ) -> "RunRequests":
        """Read a file of --records in one pass; a row of numbers is kept for each request.

        Args:
            path: The path of the file.
            histograms: The distributions of the run's result, by name.
            metrics: That will be resampled.
            meaning: How latencies are read.

        Raises:
            BadInput: A line of the records is malformed.
        """
        file = RecordFile(path)
        settings = file.header.settings.replace(latency_from=meaning.clock)
        groups = [
            _LatencyColumns(name, settings, histograms, metrics, meaning) for name in LATENCIES
        ]
        rows = array("d")
        for record in file:
            rows.extend((record.index, *_outcome_columns(record, file.start_ns)))
            for group in groups:
                rows.extend(group.row(record))
        table = np.array(rows).reshape(
            -1, 1 + _OUTCOME_WIDTH + sum(group.width for group in groups)
        )
        table = table[np.argsort(table[:, 0], kind="stable")]
        ends = np.cumsum([1, _OUTCOME_WIDTH, *(group.width for group in groups)])[:-1]
        _, outcomes, *parts = np.split(table, ends, axis=1)
        latencies = {
            group.name: group.values(part) for group, part in zip(groups, parts, strict=True)
        }
        ok, failed, counted = outcomes[:, 0], outcomes[:, 1], outcomes[:, 2]
        good = ok.copy()
        for name, limit_ns in slo.parse_goodput(settings.goodput).items():
            # True for NaN: a single token has no TPOT.
            good *= ~(latencies[name].means > limit_ns / 1e6)
        return cls(failed, counted, latencies, *_ended_requests(outcomes, good))

    @classmethod
    def of_sample(
        cls,
        sample: RequestSample,
        histograms: Mapping[str, Histogram],
        metrics: Iterable[Metric],
        meaning: Meaning,
    ) -> "RunRequests":
        """Take the requests that a result has; they have no tokens, no gaps and no exact ends.

        Args:
            sample: All requests of the run; latencies start where `meaning` says.
            histograms: As in `read`.
            metrics: As in `read`.
            meaning: As in `read`.
        """
        sent_s, e2el_ms = np.array(sample.sent_s), np.array(sample.e2el_ms)
        measured = {"ttft": sample.ttft_ms, "tpot": sample.tpot_ms, "e2el": sample.e2el_ms}
        latencies = {}
        for name, values in measured.items():
            # TPOT as vLLM divides: how it varies is the same.
            known = "tpot_n1" if name == "tpot" else meaning.distribution(name)
            distribution = histograms[known]
            percentiles = percentiles_of(name, metrics)
            limits_ms = np.array(distribution.percentiles(percentiles), dtype=float) / 1e6
            ms = np.array(values, dtype=float)
            counts = (~np.isnan(ms)).astype(float)
            within = (ms[:, None] <= limits_ms).astype(float).T
            latencies[name] = LatencyValues(
                np.nan_to_num(ms), counts, dict(zip(percentiles, within, strict=True)), distribution
            )
        # Of E2EL from due, these are late by the wait before a request was sent: too late for a
        # throughput, and good enough to choose the length of blocks.
        ends_s = np.sort(sent_s + e2el_ms / 1e3)
        waits_s = np.diff(ends_s, prepend=sent_s[0])
        every = np.ones(len(sent_s))
        ended = EndedRequests(waits_s, {})
        in_flight = float(e2el_ms.sum() / 1e3 / waits_s.sum())
        return cls(np.zeros(len(sent_s)), every, latencies, ended, in_flight)

    @property
    def block_length(self) -> int:
        """Block length, in requests.

        Gaps are left out: those of a request are as late as the request.
        """
        series = [values.means for name, values in self.latencies.items() if name not in slo.GAPS]
        return block_bootstrap.block_length(self.count, self.in_flight, *series)

    @property
    def batch_length(self) -> int:
        """Least length of a batch, in requests: as a block, but for its autocorrelation
        (`batch_means`), and long enough for a median.
        """
        least = block_bootstrap.block_length(self.count, self.in_flight)
        return max(least, least_samples(50.0))

    @property
    def count(self) -> int:
        """Number of requests that ended."""
        return len(self.ended.waits_s)

    def too_short_for(self, length: int) -> str | None:
        """Return why the run is too short for blocks of this length; None if it is not."""
        if block_bootstrap.enough_blocks(self.count, length):
            return None
        blocks = block_bootstrap.MIN_BLOCKS
        return (
            f"{self.count} requests are fewer than {blocks} blocks of {length}: send "
            f"{blocks * length} or more"
        )

    def keeps(self, metric: Metric) -> bool:
        """Return whether a metric can be resampled, if the values are enough."""
        kept = (ERROR_RATE, *self.ended.counts, *self.latencies)
        return (metric.latency or metric.name) in kept

    def resample(self, metric: Metric, scheme: Scheme, seed: int) -> Floats | None:
        """Return replicates of a metric; None if it has none.

        Args:
            metric: One of those that it was made for.
            scheme: How the replicates are made.
            seed: The seed of the random numbers.
        """
        if not self.keeps(metric):
            return None
        if metric.latency:
            values = self.latencies[metric.latency]
            if metric.percentile is not None:
                return values.resample_percentile(metric.percentile, scheme, seed)
            return values.resample_mean(scheme, seed) if metric.statistic == "mean" else None
        if metric.name == ERROR_RATE:
            return scheme.ratios(self.failed, self.counted, seed)
        return scheme.ratios(self.ended.counts[metric.name], self.ended.waits_s, seed)


class _LatencyColumns:
    """The columns of a latency in the table of a run's requests.

    Args:
        name: The name of the latency.
        settings: The settings of the run.
        histograms: The distributions of the run, by name.
        metrics: Whose percentiles will be resampled.
        meaning: How latencies are read.
    """

    def __init__(
        self,
        name: str,
        settings: RunSettings,
        histograms: Mapping[str, Histogram],
        metrics: Iterable[Metric],
        meaning: Meaning,
    ) -> None:
        self.name, self._settings, self._as_vllm = name, settings, meaning.as_vllm
        self._distribution = histograms[meaning.distribution(name)]
        self._percentiles = percentiles_of(name, metrics)
        # NaN without values
        percentiles_ns = np.array(self._distribution.percentiles(self._percentiles), dtype=float)
        self._percentiles_ms: Floats = percentiles_ns / 1e6

    @property
    def width(self) -> int:
        """Number of columns."""
        return 2 + len(self._percentiles)

    def row(self, record: Record) -> Sequence[float]:
        """Return the sum of a request's values, their number, and the number of them up to each
        percentile.
        """
        if self.name in slo.GAPS:
            request_gaps = gaps(record, self.name)
            within = request_gaps.repeats @ (request_gaps.ms[:, None] <= self._percentiles_ms)
            return (
                float(request_gaps.repeats @ request_gaps.ms),
                float(request_gaps.repeats.sum()),
                *within.tolist(),
            )
        ms = None
        if record.outcome is Outcome.OK:
            if self.name == "tpot" and self._as_vllm:
                ms = to_ms(record.tpot_n1_ns)
            elif (measured := latency(record, self.name, self._settings)) is not None:
                ms = measured.ms
        return (
            (0.0,) * self.width if ms is None else (ms, 1.0, *(ms <= self._percentiles_ms).tolist())
        )

    def values(self, columns: Floats) -> LatencyValues:
        """Return the values in the columns of all requests."""
        sums, counts, *within = columns.T
        return LatencyValues(
            sums, counts, dict(zip(self._percentiles, within, strict=True)), self._distribution
        )


def _outcome_columns(record: Record, start_ns: int) -> tuple[float, ...]:
    """Return the outcome of a request.

    Returns:
        Whether it succeeded, whether the server failed it, and whether it counts in the error rate
        (`Failures`); when it was due, sent (infinite: never) and ended, in ns after the start of
        the clock; its input and output tokens, 0 unless it succeeded.
    """
    ok = record.outcome is Outcome.OK
    cause = cause_of(record.outcome)
    never_due = cause is Cause.RUN and not record.ready
    failed = cause is Cause.SERVER or never_due
    counted = ok or failed or cause is Cause.CLIENT
    sent = record.sent - start_ns if record.sent else math.inf
    inputs = record.prompt_tokens if record.prompt_tokens >= 0 else record.expected_tokens
    return (
        ok,
        failed,
        counted,
        record.due - start_ns,
        sent,
        record.closed - start_ns,
        ok * inputs,
        ok * record.answer_tokens,
    )


def _ended_requests(columns: Floats, good: Floats) -> tuple[EndedRequests, float]:
    """Return the requests for throughputs, and how many were in flight on average.

    Args:
        columns: A row of `_outcome_columns` for each request.
        good: 1 if the request met --goodput, else 0.
    """
    ok, _, _, due, sent, closed, inputs, outputs = columns.T
    begin = sent.min(initial=math.inf)
    if not math.isfinite(begin):
        begin = 0.0
    order = np.argsort(closed, kind="stable")
    waits_s = np.diff(np.maximum(closed[order], begin), prepend=begin) / 1e9
    counts = {
        "request_throughput": ok,
        "output_throughput": outputs,
        "total_throughput": inputs + outputs,
        "goodput": good,
    }
    sojourns_s = (closed - due)[np.isfinite(sent)].sum() / 1e9
    # All at once, or none.
    in_flight = sojourns_s / waits_s.sum() if waits_s.any() else len(waits_s)
    return EndedRequests(waits_s, {name: values[order] for name, values in counts.items()}), float(
        in_flight
    )
