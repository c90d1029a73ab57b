"""Folds the Records of a run into histograms and counters as they end."""

import collections
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Self

from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.core.accumulator import Latency, Tally
from loadgen.core.counter import Counter
from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.core.request_rows import RequestRows
from loadgen.core.sketch import Sketch
from loadgen.metrics.failures import SILENCE_NS
from loadgen.metrics.snapshot import (
    BIN_NS,
    COUNTERS,
    LATENCIES,
    OF_LOOP,
    RETRY_ROW,
    UNFINISHED,
    WAITS,
    Details,
    LoopTotals,
    SampledAnswer,
    Snapshot,
    first_examples,
)
from loadgen.metrics.streamed_tokens import sampled
from loadgen.metrics.sums import add_unread

COUNTED_HERE = (
    *("departures", "never_due", "broken_off", "silent_streams"),
    *OF_LOOP,
)
GIVEN_UP = (Outcome.TIMEOUT, Outcome.TIMEOUT_FIRST_TOKEN, Outcome.STALLED, Outcome.CANCELLED)


class Recorder:
    """Counts the requests of one run, or of one worker's part of it.

    Args:
        start_ns: When the clock of the run starts.
        scheduled: How many requests are to be sent.
        limits: The --goodput limits: metric (ttft, tpot, e2el) to ns.
        from_due: Whether those limits, and latencies over time, count from due (else from sent).
        detailed: Keep every request's lengths, latencies and text.

    Attributes:
        counter: Counts the requests that have a record.
        add: Counts a record that has its outcome: `counter.add` itself.
        waits: The histograms of ns that are no latencies, by name.
        counters: The counters that `Tally` does not have, by name.
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
        self.counters = dict.fromkeys(COUNTED_HERE, 0)
        self._tally = Tally(  # has all other counters
            start_ns, BIN_NS, self._latencies, self.waits, from_due, dict(limits or {})
        )
        self._rows = RequestRows(start_ns, from_due)
        self.counter = Counter(
            self._tally,
            self._rows,
            self._add_more,
            always=detailed,
            silence_ns=SILENCE_NS,
        )
        self.add = self.counter.add
        self.never_sent: list[tuple[int, int]] = []
        self._failures = collections.Counter[str]()  # by outcome
        self._sample: list[SampledAnswer] = []
        self._examples: dict[str, list[dict[str, Any]]] = {}
        self._retries = bytearray()  # RETRY_ROW after RETRY_ROW
        self._details = Details() if detailed else None
        self._silences: list[dict[str, Any]] = []
        self._unread: dict[str, tuple[int, str]] = {}

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
        return self.counter.ended + sum(count for _, count in self.never_sent)

    @property
    def failed(self) -> int:
        """Requests with a record that did not end well."""
        return self.counter.ended - self.counter.ok

    @property
    def failed_by_class(self) -> collections.Counter[str]:
        """Requests that did not end well, by their class, as "status(503)"; those never sent are
        among them.
        """
        return self._failures.copy()

    def count(self, name: str) -> int:
        """Return one of the `snapshot.COUNTERS`, so far."""
        return self._own_count(name)

    def sketch(self, name: str) -> Sketch:
        """Return one of the `snapshot.DISTRIBUTIONS`, so far."""
        return Sketch.of(self.waits[name] if name in self.waits else self._latencies[name].points)

    def add_never_sent(self, first: int, count: int, outcome: Outcome, detail: str) -> None:
        """Count `count` requests from the number `first` on, which ended with `outcome` before
        they were sent.
        """
        if count:
            self.never_sent.append((first, count))
            self._failures[str(outcome)] += count
            self._add_example(str(outcome), first, "scheduled", detail)

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
        outcomes = self._failures + collections.Counter(ok=self.counter.ok)
        return Snapshot(
            start_ns=self.start_ns,
            scheduled=self.scheduled,
            outcomes=dict(sorted(outcomes.items())),
            examples={name: list(examples) for name, examples in self._examples.items()},
            finishes=dict(sorted(self.counter.finishes.items())),
            early_stops=dict(sorted(self.counter.early_stops.items())),
            counters={name: self._own_count(name) for name in COUNTERS},
            histograms={name: latency.points for name, latency in self._latencies.items()}
            | {name: histogram.copy() for name, histogram in self.waits.items()},
            lower={name: latency.lower for name, latency in self._latencies.items()},
            upper={name: latency.upper for name, latency in self._latencies.items()},
            rows=bytes(self._rows),
            retries=bytes(self._retries),
            token_counts=self._tally.bins,
            timeline=self._tally.timeline,
            silences=tuple(self._silences),
            unread=dict(self._unread),
            partial=partial,
            sample=tuple(sorted(self._sample)),
            details=None if self._details is None else self._details + Details(),
        )

    def _own_count(self, name: str) -> int:
        """Return a counter without those of parts, which a subclass adds to `count`."""
        return self.counters[name] if name in self.counters else getattr(self._tally, name)

    def _add_more(self, record: Record) -> None:
        """Count what most records do not have: `Counter` says of which."""
        if record.unread:
            self._unread = add_unread(self._unread, record.unread)
        if record.sent > 0 and (record.disconnect_tokens or record.disconnect_ns >= 0):
            self.counters["departures"] += 1
        if record.attempts > 1:
            self._add_retried(record)
        if record.first_token and record.closed - record.first_token >= SILENCE_NS:
            self._add_silence(record)
        error = ""
        if record.outcome is not Outcome.OK:
            error = self._add_failure(record)
        if self._details is not None:
            self._add_details(self._details, record, error)

    def _add_failure(self, record: Record) -> str:
        """Count a request that did not end well; return its error as the details have it."""
        is_status = record.outcome is Outcome.STATUS
        name = f"status({record.status})" if is_status else str(record.outcome)
        self._failures[name] += 1
        # Only the later turns of a failed session have a record and were given to no transport.
        if record.outcome is Outcome.CANCELLED and not record.ready:
            self.counters["never_due"] += 1
        if record.outcome is Outcome.STREAM_ERROR and record.events > 0:
            self.counters["broken_off"] += 1
        self._add_example(name, record.index, phase(record), record.detail or "")
        if record.sent and record.outcome in GIVEN_UP:
            self.waits[UNFINISHED].record(record.closed - record.due)
        return f"{name}: {record.detail}"

    def _add_retried(self, record: Record) -> None:
        ok = record.outcome is Outcome.OK
        since_due = [
            max(at_ns - record.due, 0) if ok else -1
            for at_ns in (record.first_token, record.last_token)
        ]
        first_ns = record.first_closed - record.first_sent
        self._retries += RETRY_ROW.pack(
            record.index,
            record.attempts,
            record.first_status,
            first_ns,
            record.retried_ns,
            *since_due,
        )

    def _add_silence(self, record: Record) -> None:
        """Count a stream in which no token came for SILENCE_NS, from one to the next or until it
        closed.
        """
        stamps = [*memoryview(record.marks).cast("B").cast("q"), record.closed]
        longest_ns, since_ns = max((after - before, -before) for before, after in pairwise(stamps))
        if longest_ns < SILENCE_NS:
            return
        self.counters["silent_streams"] += 1
        since_s = (-since_ns - self.start_ns) / 1e9
        silence = {"index": record.index, "since_s": since_s, "for_s": longest_ns / 1e9}
        self._silences = first_examples([*self._silences, silence])

    def _add_example(self, name: str, index: int, reached: str, detail: str) -> None:
        examples = self._examples.get(name, [])
        if len(examples) < Snapshot.EXAMPLES or index < examples[-1]["index"]:
            self._examples[name] = first_examples(
                [*examples, {"index": index, "phase": reached, "detail": detail}]
            )

    @staticmethod
    def _add_details(details: Details, record: Record, error: str) -> None:
        ok = not error
        stamps = record.stamps if ok else []
        counted = record.prompt_tokens
        details.input_lens.append(counted if counted >= 0 else record.expected_tokens)
        details.output_lens.append(record.answer_tokens if ok else 0)
        details.ttfts.append((record.first_token - record.sent) / 1e9 if ok else 0.0)
        details.itls.append([(b - a) / 1e9 for a, b in pairwise(stamps)])
        details.latencies.append((record.last_token - record.sent) / 1e9 if ok else 0.0)
        details.start_times.append(record.sent / 1e9)
        details.queue_times.append((record.sent - record.due) / 1e9 if record.sent else 0.0)
        details.generated_texts.append(record.generated_text if ok else "")
        details.errors.append(error)


def phase(record: Record) -> str:
    """Return how far a request got: scheduled, connecting, waiting (for a byte), head, first
    token or streaming.
    """
    if record.events:
        return "streaming"
    if record.status:
        return "first token"
    if record.first_byte:
        return "head"
    if record.sent:
        return "waiting"
    return "connecting" if record.ready else "scheduled"
