"""Folds the Records of a run into histograms and counters as they end."""

import collections
from collections.abc import Callable, Mapping
from typing import Self

from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.core.accumulator import Latency, Tally
from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.record_counter import RecordCounter
from loadgen.core.request_rows import RequestRows
from loadgen.core.sketch import Sketch
from loadgen.metrics.details import Details
from loadgen.metrics.failures import SILENCE_NS
from loadgen.metrics.incidents import Incidents
from loadgen.metrics.snapshot import (
    BIN_NS,
    COUNTERS,
    LATENCIES,
    OF_LOOP,
    UNFINISHED,
    WAITS,
    LoopTotals,
    SampledAnswer,
    Snapshot,
)
from loadgen.metrics.streamed_tokens import sampled


class Recorder:
    """Counts the requests of one run, or of one worker's part of it.

    Args:
        start_ns: When the clock of the run starts.
        scheduled: How many requests are to be sent.
        limits: The --goodput limits: metric (ttft, tpot, e2el) to ns.
        from_due: Whether those limits, and latencies over time, count from due (else from sent).
        detailed: Keep every request's lengths, latencies and text.

    Attributes:
        add: Counts a record that has its outcome: in compiled code, but for its incidents.
        waits: The histograms of ns that are no latencies, by name.
        counters: The counters that no record has, by name.
        never_sent: Requests that ended before they had a record: the number of the first, and how
            many.
    """

    add: Callable[[Record], None]

    def __init__(
        self,
        start_ns: int,
        scheduled: int,
        *,
        limits: Mapping[str, int] | None = None,
        from_due: bool = True,
        detailed: bool = False,
    ) -> None:
        self.start_ns = start_ns
        self.scheduled = scheduled
        self._latencies = {name: Latency() for name in LATENCIES}
        self.waits = {name: Histogram() for name in (*WAITS, UNFINISHED)}
        self.counters = dict.fromkeys(OF_LOOP, 0)
        self._tally = Tally(
            start_ns, BIN_NS, self._latencies, self.waits, from_due, dict(limits or {})
        )
        self._rows = RequestRows(start_ns, from_due)
        self._details = Details() if detailed else None
        self._incidents = Incidents(start_ns, self.waits[UNFINISHED])
        self._records = RecordCounter(
            self._tally,
            self._rows,
            self._incidents,
            silence_ns=SILENCE_NS,
            add_details=None if self._details is None else self._details.add,
        )
        self.add = self._records.add
        self.never_sent: list[tuple[int, int]] = []
        self._sample: list[SampledAnswer] = []

    @classmethod
    def from_settings(cls, settings: RunSettings, start_ns: int, scheduled: int) -> Self:
        """Make a recorder that keeps and judges what the settings ask."""
        return cls(
            start_ns,
            scheduled,
            limits=slo.parse_goodput(settings.goodput),
            from_due=settings.latency_from == "due",
            detailed=settings.save_detailed,
        )

    def add_sample(self, record: Record, streamed: int) -> None:
        """Keep how many tokens the text of a record has that was added before."""
        self._sample.append(sampled(record, streamed))

    @property
    def ended(self) -> int:
        """Requests that have ended, with those never sent."""
        return self._records.ended + sum(count for _, count in self.never_sent)

    @property
    def failed(self) -> int:
        """Requests with a record that did not end well."""
        return self.failed_by_class.total() - sum(count for _, count in self.never_sent)

    @property
    def failed_by_class(self) -> collections.Counter[str]:
        """Requests that did not end well, by their class, as "status(503)"; those never sent are
        among them.
        """
        return self._incidents.failures.copy()

    def count(self, name: str) -> int:
        """Return one of the `snapshot.COUNTERS`, so far."""
        if name == "silent_streams":
            return self._incidents.silent_streams
        return self.counters[name] if name in self.counters else getattr(self._tally, name)

    def sketch(self, name: str) -> Sketch:
        """Return one of the `snapshot.DISTRIBUTIONS`, so far."""
        if name in self.waits:
            return Sketch.of(self.waits[name])
        return self._latencies[name].sketch

    def add_never_sent(self, first: int, count: int, outcome: Outcome, detail: str) -> None:
        """Count `count` requests from the number `first` on, which ended with `outcome` before
        they were sent.
        """
        if count:
            self.never_sent.append((first, count))
            self._incidents.failures[str(outcome)] += count
            self._incidents.add_example(str(outcome), first, "scheduled", detail)

    def restore(self, totals: LoopTotals) -> None:
        """Set what records do not hold, once all of them have been added again."""
        self.scheduled = totals.scheduled
        self.counters |= {name: getattr(totals, name) for name in OF_LOOP}
        for name, histogram in totals.histograms.items():
            self.waits[name].merge(histogram)

    def snapshot(self, partial: str | None = None) -> Snapshot:
        """Copy what has been counted so far.

        Args:
            partial: Why the run ended early, or None.
        """
        outcomes = self._incidents.failures + collections.Counter(ok=self._records.ok)
        return Snapshot(
            start_ns=self.start_ns,
            scheduled=self.scheduled,
            outcomes=dict(sorted(outcomes.items())),
            examples={name: list(examples) for name, examples in self._incidents.examples.items()},
            finishes=dict(sorted(self._records.finishes.items())),
            early_stops=dict(sorted(self._records.early_stops.items())),
            said_times=dict(sorted(self._records.said_times.items())),
            # A subclass counts those of parts, too, and adds them to a snapshot by itself.
            counters={name: Recorder.count(self, name) for name in COUNTERS},
            histograms={name: latency.points for name, latency in self._latencies.items()}
            | {name: histogram.copy() for name, histogram in self.waits.items()},
            lower={name: latency.lower for name, latency in self._latencies.items()},
            upper={name: latency.upper for name, latency in self._latencies.items()},
            rows=bytes(self._rows),
            retries=bytes(self._incidents.retries),
            token_counts=self._tally.bins,
            timeline=self._tally.timeline,
            silences=tuple(self._incidents.silences),
            unread=dict(self._incidents.unread),
            partial=partial,
            sample=tuple(sorted(self._sample)),
            details=None if self._details is None else self._details + Details(),
        )
