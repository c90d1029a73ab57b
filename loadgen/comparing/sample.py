"""Sample: the requests of one run, and what its numbers would have been in runs drawn anew from them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from loadgen import blocks, slo
from loadgen.comparing.metrics import LATENCIES, Metric
from loadgen.comparing.values import Values
from loadgen.demands import GAPS, gaps_ms, latency_ms
from loadgen.outcomes import Outcome
from loadgen.records import RecordFile
from loadgen.schedule import Floats, Int64s
from loadgen.wire import Record

FEWEST_BLOCKS = 5  # of a run: what fewer differ by says too little


@dataclass(frozen=True, slots=True)
class Ended:
    """The requests that were sent, in the order in which they ended, shape (k,).

    Attributes:
        waits_s: Since the one before it ended, of the first since any was sent: their sum is the time of the run.
        counts: What each adds to a throughput, by the name of the metric.
    """

    waits_s: Floats
    counts: dict[str, Floats]


@dataclass(frozen=True)
class Sample:
    """A run's requests, shape (n,), in the order of its schedule.

    Attributes:
        ok: Whether each succeeded: 1 or 0.
        latencies: By their names.
        ended: The same requests as throughputs see them.
        in_flight: Due and not ended, on average over the run.
    """

    ok: Floats
    latencies: dict[str, Values]
    ended: Ended
    in_flight: float

    @classmethod
    def read(cls, path: str) -> "Sample":
        """Of a file of --records.

        Raises:
            BadInput: A line of it is no record.
        """
        file = RecordFile(path)
        settings = file.heading.settings
        found = {record.index: record for record in file}
        records = [found.get(index) for index in range(max(file.scheduled, 1 + max(found, default=-1)))]

        def of_each(values: Callable[[Record], tuple[Floats, Floats]]) -> Values:
            return Values.of([(_NONE, _NONE) if each is None else values(each) for each in records])

        def latency(name: str) -> Callable[[Record], tuple[Floats, Floats]]:
            if name in GAPS:
                return lambda record: gaps_ms(record, name)
            return lambda record: _one(latency_ms(record, name, settings) if record.outcome is Outcome.OK else None)

        latencies = {name: of_each(latency(name)) for name in LATENCIES}
        good = _ok(records)
        for name, limit_ns in slo.parse_goodput(settings.goodput).items():
            good *= ~(latencies[name].means > limit_ns / 1e6)  # one of a single token has no TPOT
        ended, in_flight = _ended(records, good)
        return cls(_ok(records), latencies, ended, in_flight)

    @property
    def enough(self) -> float:
        """How long blocks must be, in requests.

        Twice as long as correlations ask, which would have the mean of the squared error least, not the error of too
        little variance: of simulated queues that are alike fewer are told apart.
        """
        series = [each.means for name, each in self.latencies.items() if name not in GAPS]
        return max(blocks.length(len(self.ok), self.in_flight), *(2 * blocks.correlated(each) for each in series))

    @property
    def fewest(self) -> int:
        """Requests of the run, or those that were sent, which are fewer where it was cut short."""
        return min(len(self.ok), len(self.ended.waits_s))

    def why_not(self, length: int) -> str | None:
        """Why blocks of this length tell nothing of the run; None where they do."""
        if self.fewest >= FEWEST_BLOCKS * length:
            return None
        return f"{self.fewest} requests are fewer than {FEWEST_BLOCKS} blocks of {length}"

    def drawn(self, metric: Metric, length: int, seed: int) -> Floats | None:
        """The values of a metric in runs drawn anew, shape (blocks.RESAMPLES,); None where the requests do not tell it.

        Args:
            metric: Which.
            length: Of a block, in requests.
            seed: Of what is drawn.
        """
        if metric.latency is not None:
            latency, name = metric.latency
            values = self.latencies[latency]
            p = 50.0 if name == "median" else float(name[1:]) if name.startswith("p") else None
            if p is None:
                return values.mean(length, seed) if name == "mean" else None
            return values.percentile(p, length, seed)
        if metric.name == "error_rate":
            return blocks.ratios(1 - self.ok, np.ones(len(self.ok)), length, seed)
        counts = self.ended.counts.get(metric.name)
        return None if counts is None else blocks.ratios(counts, self.ended.waits_s, length, seed)


_NONE: Floats = np.empty(0)
_ONCE: Floats = np.ones(1)


def _one(value: float | None) -> tuple[Floats, Floats]:
    return (_NONE, _NONE) if value is None else (np.array([value]), _ONCE)


def _ok(records: list[Record | None]) -> Floats:
    return np.array([each is not None and each.outcome is Outcome.OK for each in records], dtype=float)


def _ended(records: list[Record | None], good: Floats) -> tuple[Ended, float]:
    """The requests that were sent as throughputs see them, and how many were in flight on average."""
    sent = [record for record in records if record is not None and record.sent]
    if not sent:
        return Ended(_NONE, {}), 0.0
    closed: Int64s = np.array([record.closed for record in sent])
    order = np.argsort(closed, kind="stable")
    waits_s = np.diff(closed[order], prepend=min(record.sent for record in sent)) / 1e9
    ok = _ok(list(sent))
    outputs = ok * [record.answer_tokens for record in sent]
    inputs = ok * [record.prompt_tokens if record.prompt_tokens >= 0 else record.expected_tokens for record in sent]
    counts = {
        "request_throughput": ok,
        "output_throughput": outputs,
        "total_throughput": inputs + outputs,
        "goodput": good[[record.index for record in sent]],
    }
    sojourns_s = (closed - [record.due for record in sent]).sum() / 1e9
    in_flight = sojourns_s / waits_s.sum() if waits_s.any() else math.inf
    return Ended(waits_s, {name: each[order] for name, each in counts.items()}), float(in_flight)
