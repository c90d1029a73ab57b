"""Sample: the requests of one run, and what its numbers would have been in runs drawn anew from them."""

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.analysis.compare.latency_values import Values
from loadgen.analysis.compare.metrics import LATENCIES, Metric
from loadgen.analysis.search.criteria import gaps_ms, latency_ms
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.core.outcome import OUR_FAULTS, Outcome
from loadgen.core.wire import Record
from loadgen.metrics.records import shards
from loadgen.metrics.records.file import RecordFile
from loadgen.stats import block_bootstrap
from loadgen.util.arrays import Floats


@dataclass(frozen=True, slots=True)
class Ended:
    """The requests that ended, in the order in which they did, shape (k,).

    Attributes:
        waits_s: Since the one before it ended, of the first since any was sent: their sum is the time of the run.
        counts: What each adds to a throughput, by the name of the metric.
    """

    waits_s: Floats
    counts: dict[str, Floats]


@dataclass(frozen=True)
class Sample:
    """A run's requests, in the order of its schedule.

    Attributes:
        failed: Whether the server failed each, 1 or 0, shape (n,).
        counted: Whether it counts among those that failed or did not (`Failures`), likewise.
        latencies: By their names, of those that ended.
        ended: The same as throughputs see them.
        in_flight: Due and not ended, on average over the run.
    """

    failed: Floats
    counted: Floats
    latencies: dict[str, Values]
    ended: Ended
    in_flight: float

    @classmethod
    def read(cls, path: str, histograms: Mapping[str, Histogram], metrics: Iterable[Metric]) -> "Sample":
        """Of a file of --records, one pass over it: what is kept is a row of numbers for each request.

        Args:
            path: The file.
            histograms: The distributions of the run, as in its result.
            metrics: What will be drawn.

        Raises:
            BadInput: A line of it is no record.
        """
        file = RecordFile(path)
        settings = file.header.settings
        parts = [_Part(name, settings, histograms, metrics) for name in LATENCIES]
        rows = array("d")
        for _, record in shards.lines(file):
            rows.extend((record.index, *_ends(record, file.start_ns)))
            for part in parts:
                rows.extend(part.row(record))
        table = np.array(rows).reshape(-1, 1 + _ENDS + sum(part.width for part in parts))
        table = table[np.argsort(table[:, 0], kind="stable")]
        _, of_ends, *of_parts = np.split(table, np.cumsum([1, _ENDS, *(part.width for part in parts)])[:-1], axis=1)
        latencies = {part.name: part.values(each) for part, each in zip(parts, of_parts, strict=True)}
        ok, failed, counted = of_ends[:, 0], of_ends[:, 1], of_ends[:, 2]
        good = ok.copy()
        for name, limit_ns in slo.parse_goodput(settings.goodput).items():
            good *= ~(latencies[name].means > limit_ns / 1e6)  # one of a single token has no TPOT
        return cls(failed, counted, latencies, *_ended(of_ends, good))

    @property
    def enough(self) -> int:
        """How long blocks must be, in requests; the gaps of a request are as late as it is."""
        series = [each.means for name, each in self.latencies.items() if name not in slo.GAPS]
        return block_bootstrap.long_enough(self.count, self.in_flight, *series)

    @property
    def count(self) -> int:
        """Requests that ended."""
        return len(self.ended.waits_s)

    def why_not(self, length: int) -> str | None:
        """Why blocks of this length tell nothing of the run; None where they do."""
        if block_bootstrap.tell(self.count, length):
            return None
        return f"{self.count} requests are fewer than {block_bootstrap.FEWEST} blocks of {length}"

    def drawn(self, metric: Metric, length: int, seed: int) -> Floats | None:
        """The values of a metric in resampled runs, shape (block_bootstrap.RESAMPLES,); None if unknown.

        Args:
            metric: Which.
            length: Of a block, in requests.
            seed: Of what is drawn.
        """
        if metric.latency is not None:
            values = self.latencies[metric.latency[0]]
            if metric.percentile is not None:
                return values.percentile(metric.percentile, length, seed)
            return values.mean(length, seed) if metric.latency[1] == "mean" else None
        if metric.name == "error_rate":
            return block_bootstrap.ratios(self.failed, self.counted, length, seed)
        counts = self.ended.counts.get(metric.name)
        return None if counts is None else block_bootstrap.ratios(counts, self.ended.waits_s, length, seed)


class _Part:
    """The columns of a latency in the rows of a run.

    Args:
        name: Of the latency.
        settings: Of the run.
        histograms: Its distributions.
        metrics: Of which the percentiles are that will be drawn.
    """

    def __init__(
        self, name: str, settings: RunSettings, histograms: Mapping[str, Histogram], metrics: Iterable[Metric]
    ) -> None:
        self.name, self._settings = name, settings
        self._distribution = histograms[slo.distribution(name, settings.latency_from)]
        found = {each.percentile for each in metrics if each.latency is not None and each.latency[0] == name}
        self._percentiles = sorted(p for p in found if p is not None)
        ends_ns = np.array(self._distribution.percentiles(self._percentiles), dtype=float)  # NaN where there is none
        self._ends_ms: Floats = ends_ns / 1e6

    @property
    def width(self) -> int:
        """How many columns."""
        return 2 + len(self._percentiles)

    def row(self, record: Record) -> Sequence[float]:
        """Of the values of a request: their sum, how many, and how many are no longer than each percentile of all."""
        if self.name in slo.GAPS:
            each, times = gaps_ms(record, self.name)
            within = times @ (each[:, None] <= self._ends_ms)
            return (float(times @ each), float(times.sum()), *within.tolist())
        ms = latency_ms(record, self.name, self._settings) if record.outcome is Outcome.OK else None
        return (0.0,) * self.width if ms is None else (ms, 1.0, *(ms <= self._ends_ms).tolist())

    def values(self, columns: Floats) -> Values:
        """What the rows of a run, one after the other, come to."""
        total, count, *within = columns.T
        return Values(total, count, dict(zip(self._percentiles, within, strict=True)), self._distribution)


_ENDS = 8


def _ends(record: Record, start_ns: int) -> tuple[float, ...]:
    """Whether a request succeeded, whether the server failed it, and whether it counts among either (`Failures`); when
    it was due, sent (infinite: never) and ended, ns after the start of the clock; and its tokens, if it succeeded.
    """
    ok = record.outcome is Outcome.OK
    counted = not (record.outcome is Outcome.CANCELLED and record.ready)
    failed = counted and not ok and record.outcome not in OUR_FAULTS
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


def _ended(columns: Floats, good: Floats) -> tuple[Ended, float]:
    """The requests as throughputs see them, and how many were in flight on average.

    Args:
        columns: What `_ends` says of each.
        good: Whether each met --goodput: 1 or 0.
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
    in_flight = sojourns_s / waits_s.sum() if waits_s.any() else len(waits_s)  # all at once, or none
    return Ended(waits_s, {name: each[order] for name, each in counts.items()}), float(in_flight)
