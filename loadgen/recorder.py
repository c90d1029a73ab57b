"""Recorder: folds the Records of a run into histograms and counters as they end."""

from array import array
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Self

import numpy as np

from loadgen import slo
from loadgen.histogram import Histogram
from loadgen.outcomes import Outcome
from loadgen.prompts import UNPLANNED
from loadgen.settings import RunSettings
from loadgen.snapshot import BIN_NS, COUNTERS, DISTRIBUTIONS, UNFINISHED, Details, Snapshot
from loadgen.wire import BY_EVENTS, BY_IDS, BY_USAGE, Record

EARLY_NS = 50_000
GIVEN_UP = (Outcome.TIMEOUT, Outcome.TIMEOUT_FIRST_TOKEN, Outcome.STALLED, Outcome.CANCELLED)
MOST_FINISHES = 20  # finish reasons are the server's words: more of them than this are counted together
_GROWTH = 1_000  # bins added at a time: ten seconds
_BLOCK = 3 * 8192  # numbers


class Recorder:
    """What is kept of the requests of one run, or of one worker's stripe of it.

    Args:
        start_ns: When the clock of the run starts.
        scheduled: How many requests are to be sent.
        limits: The --goodput limits: metric (ttft, tpot, e2el) to ns.
        from_due: Whether those limits count from due (else from sent).
        detailed: Keep every request's lengths and latencies.
    """

    def __init__(
        self,
        start_ns: int,
        scheduled: int,
        *,
        limits: Mapping[str, int] | None = None,
        from_due: bool = True,
        detailed: bool = False,
    ) -> None:
        self.start_ns, self.scheduled = start_ns, scheduled
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.histograms = {name: Histogram() for name in DISTRIBUTIONS}
        self.ended = 0
        self.never_sent: list[tuple[int, int]] = []  # the number of the first, and how many
        self._limits, self._from_due = dict(limits or {}), from_due
        self._outcomes: Counter[str] = Counter()
        self._finishes: Counter[str] = Counter()
        self._examples: dict[str, list[dict[str, Any]]] = {}
        self._rows: list[array[int]] = []  # full blocks: one array that grew would leave holes all over the heap
        self._row = array("q")  # index, sent and closed of one request after the other
        self._bins = array("q", bytes(8 * _GROWTH))
        self._details = Details() if detailed else None

    @classmethod
    def from_settings(cls, settings: RunSettings, start_ns: int, scheduled: int) -> Self:
        """A recorder that keeps and judges what the settings ask."""
        return cls(
            start_ns,
            scheduled,
            limits=slo.parse_goodput(settings.goodput),
            from_due=settings.latency_from == "due",
            detailed=settings.save_detailed,
        )

    def add(self, record: Record) -> None:
        """Count a record that has its outcome."""
        ok = record.outcome is Outcome.OK
        self.ended += 1
        name = f"status({record.status})" if record.outcome is Outcome.STATUS else str(record.outcome)
        self._outcomes[name] += 1
        sent = record.sent - self.start_ns if record.sent else -1
        self._row.extend((record.index, sent, record.closed - self.start_ns))
        if len(self._row) >= _BLOCK:
            self._rows.append(self._row)
            self._row = array("q")
        if record.sent:
            self._add_waits(record)
        if ok:
            self._add_ok(record)
        else:
            # Of what no transport was given, only the rest of a session that failed has a record.
            self.counters["never_due"] += record.outcome is Outcome.CANCELLED and not record.ready
            self.counters["lost_token_events"] += record.events
            self._add_example(name, record.index, phase(record), record.detail or "")
            if record.sent and record.outcome in GIVEN_UP:
                self.histograms[UNFINISHED].record(record.closed - record.due)
        if self._details is not None:
            self._add_details(self._details, record, "" if ok else f"{name}: {record.detail}")

    @property
    def failed(self) -> int:
        """Requests that were given to a transport and did not end well."""
        return self.ended - sum(count for _, count in self.never_sent) - self._outcomes["ok"]

    @property
    def output_tokens(self) -> int:
        """Output tokens of ok requests."""
        return self.counters["output_tokens"]

    def add_never_sent(self, first: int, count: int, outcome: Outcome, detail: str) -> None:
        """Count requests, of which the first has this number, that ended with `outcome` before they were sent."""
        if count:
            self.ended += count
            self.never_sent.append((first, count))
            self._outcomes[str(outcome)] += count
            self._add_example(str(outcome), first, "scheduled", detail)

    def snapshot(self, partial: str | None = None) -> Snapshot:
        """What has been counted so far, as it stands."""
        rows = np.concatenate([np.array(block, dtype=np.int64) for block in (*self._rows, self._row)])
        index, sent, closed = np.ascontiguousarray(rows.reshape(-1, 3).T)
        return Snapshot(
            start_ns=self.start_ns,
            scheduled=self.scheduled,
            outcomes=dict(sorted(self._outcomes.items())),
            examples={name: list(examples) for name, examples in self._examples.items()},
            finishes=dict(sorted(self._finishes.items())),
            counters=dict(self.counters),
            histograms={name: histogram.copy() for name, histogram in self.histograms.items()},
            index=index,
            sent=sent,
            closed=closed,
            bins=np.trim_zeros(np.array(self._bins, dtype=np.int64), "b"),
            partial=partial,
            details=self._details + Details() if self._details else None,
        )

    def _add_waits(self, record: Record) -> None:
        histograms, counters = self.histograms, self.counters
        # What is left of due -> sent once the wait for a slot and the connecting are taken out is our own lateness.
        lag = record.sent - record.ready - record.connect_ns
        histograms["lag"].record(max(lag, 0))
        histograms["pool_wait"].record(record.ready - record.due)
        histograms["connect"].record(record.connect_ns)
        counters["sojourn_ns"] += record.closed - record.sent
        if lag < -EARLY_NS:
            counters["early"] += 1
        if record.connect_ns:
            counters["late_connections"] += 1
        if record.by_reader:
            counters["by_reader"] += 1
        if lag >= 0 and not record.ordered:  # one sent early is counted as that
            counters["disordered"] += 1

    def _add_ok(self, record: Record) -> None:
        tokens = output_tokens(record)
        finish = record.finish_reason or ""
        self._finishes[finish if finish in self._finishes or len(self._finishes) < MOST_FINISHES else "other"] += 1
        self._add_input(record)
        self._add_output(record, tokens)
        self._add_events(record)
        self._add_gaps(record, tokens)
        tpot = self._add_latencies(record, tokens)
        if self._limits:
            self._judge(record, tpot)

    def _add_input(self, record: Record) -> None:
        counters = self.counters
        if record.input_tokens == UNPLANNED:
            told = max(record.prompt_tokens, 0)
            counters["unplanned_requests"] += 1
            counters["unplanned_input_tokens"] += told
            counters["unknown_input"] += record.prompt_tokens < 0
            counters["input_tokens"] += told
        else:
            expected = expected_tokens(record)
            counters["planned_input_tokens"] += record.input_tokens
            if record.server_tokens >= 0:
                counters["input_predicted"] += 1
                counters["predicted_server_input_tokens"] += record.server_tokens
            if record.prompt_tokens >= 0:
                counters["input_counted"] += 1
                counters["input_as_planned"] += record.prompt_tokens == expected
                counters["unexpected_input_tokens"] += record.prompt_tokens - expected
            counters["input_tokens"] += record.prompt_tokens if record.prompt_tokens >= 0 else expected
        if record.cached_tokens >= 0:
            counters["cached_counted"] += 1
            counters["cached_tokens"] += record.cached_tokens

    def _add_output(self, record: Record, tokens: int) -> None:
        counters = self.counters
        counters["planned_output_tokens"] += record.output_tokens
        counters["output_as_planned"] += tokens == record.output_tokens
        counters["output_tokens"] += tokens
        if record.completion_tokens >= 0:
            counters["usage_requests"] += 1
            counters["unseen_tokens"] += max(tokens - record.counted, 0)
            counters["surplus_events"] += max(record.counted - tokens, 0)
        elif record.tokenized >= 0:
            counters["tokenizer_requests"] += 1
        else:
            counters["event_requests" if record.counted_by == BY_EVENTS else "id_requests"] += 1
        counters["usage_per_event"] += record.counted_by == BY_USAGE
        counters["ids_per_event"] += record.counted_by == BY_IDS

    def _add_events(self, record: Record) -> None:
        counters = self.counters
        counters["token_events"] += record.events
        counters["token_reads"] += record.reads
        counters["content_events"] += record.content_events
        counters["reasoning_events"] += record.reasoning_events
        counters["other_events"] += record.other_events

    def _add_gaps(self, record: Record, tokens: int) -> None:
        """Gaps between events and between tokens, and the tokens over time."""
        last_bin = (record.last_token - self.start_ns) // BIN_NS
        if last_bin >= len(self._bins):
            self._bins.frombytes(bytes(8 * (last_bin - len(self._bins) + _GROWTH)))
        self.counters["imputed_gaps"] += record.fold(
            self.histograms["icl"], self.histograms["itl"], self._bins, self.start_ns, BIN_NS, tokens
        )

    def _add_latencies(self, record: Record, tokens: int) -> int | None:
        """Count the latencies of the whole request, ns; returns its TPOT, None where it has none."""
        histograms, counters = self.histograms, self.counters
        due, sent, first, last = record.due, record.sent, record.first_token, record.last_token
        histograms["ttft_due"].record(first - due)
        histograms["ttft_sent"].record(first - sent)
        histograms["e2el_due"].record(last - due)
        histograms["e2el_sent"].record(last - sent)
        if record.first_answer:
            histograms["ttfo_due"].record(record.first_answer - due)
            histograms["ttfo_sent"].record(record.first_answer - sent)
        counters["stream_ns"] += last - first
        tpot = tpot_ns(record, tokens)
        if tpot is None:
            return None
        after_first = tokens - record.first_tokens
        histograms["tpot"].record(tpot)
        counters["decode_ns"] += last - first
        counters["decode_tokens"] += after_first
        if tokens > 1:
            histograms["tpot_n1"].record((last - first) // (tokens - 1))
        counters["unequal"] += not 0 <= (last - sent) - (first - sent) - tpot * after_first < after_first
        return tpot

    def _judge(self, record: Record, tpot: int | None) -> None:
        """Hold one request against the --goodput limits."""
        self.counters["good"] += self._is_good(record, record.due if self._from_due else record.sent, tpot)
        self.counters["good_sent"] += self._is_good(record, record.sent, tpot)

    def _is_good(self, record: Record, start: int, tpot: int | None) -> bool:
        # a one-token reply has no TPOT and is judged on the rest
        measured = {"ttft": record.first_token - start, "e2el": record.last_token - start, "tpot": tpot}
        return all((value := measured[name]) is None or value <= limit for name, limit in self._limits.items())

    def _add_example(self, name: str, index: int, reached: str, detail: str) -> None:
        # The first of the schedule, not the first to end: so that stripes merge into what the whole would have kept,
        # and records make the report of the run, in which those never sent were the first to end.
        examples = self._examples.setdefault(name, [])
        if len(examples) < Snapshot.EXAMPLES or index < examples[-1]["index"]:
            examples.append({"index": index, "phase": reached, "detail": detail})
            examples.sort(key=lambda example: int(example["index"]))
            del examples[Snapshot.EXAMPLES :]

    @staticmethod
    def _add_details(details: Details, record: Record, error: str) -> None:
        ok = not error
        stamps = record.stamps if ok else []
        details.input_lens.append(record.prompt_tokens if record.prompt_tokens >= 0 else expected_tokens(record))
        details.output_lens.append(output_tokens(record) if ok else 0)
        details.ttfts.append((record.first_token - record.sent) / 1e9 if ok else 0.0)
        details.itls.append([(b - a) / 1e9 for a, b in pairwise(stamps)])
        details.latencies.append((record.last_token - record.sent) / 1e9 if ok else 0.0)
        details.start_times.append(record.sent / 1e9)
        details.queue_times.append((record.sent - record.due) / 1e9 if record.sent else 0.0)
        details.errors.append(error)


def expected_tokens(record: Record) -> int:
    """The tokens that the server should count of a prompt: as predicted, else those of its text."""
    return record.server_tokens if record.server_tokens >= 0 else record.input_tokens


def output_tokens(record: Record) -> int:
    """The tokens of an answer: by its usage, else by ids, else by a tokenizer, else one for each event."""
    if record.completion_tokens >= 0:
        return record.completion_tokens
    return record.tokenized if record.tokenized >= 0 else record.counted


def tpot_ns(record: Record, tokens: int) -> int | None:
    """The time per output token of an answer of so many, ns; None of one in a single event, which shows no pace."""
    after_first = tokens - record.first_tokens
    if after_first <= 0 or record.events < 2:
        return None
    return (record.last_token - record.first_token) // after_first


def phase(record: Record) -> str:
    """How far a request got: scheduled, connecting, waiting (for a byte), head, first token or streaming."""
    if record.events:
        return "streaming"
    if record.status:
        return "first token"
    if record.first_byte:
        return "head"
    if record.sent:
        return "waiting"
    return "connecting" if record.ready else "scheduled"
