"""Immutable numbers of a run or of a part of it; parts merge into the whole without loss."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, structs

from loadgen.config.slo import GAPS
from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Cause, ended_by
from loadgen.core.request_rows import FAILED, LEFT
from loadgen.core.sketch import Timeline
from loadgen.metrics.details import Details
from loadgen.metrics.failures import Failures
from loadgen.metrics.sums import add_counts, add_unread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from loadgen.util.arrays import Int64s

BIN_NS = 10_000_000  # output tokens are counted per hundredth of a second: 3 MB an hour
LATENCIES = (
    "ttft_due",
    "ttft_sent",
    "ttfo_due",
    "ttfo_sent",
    "tpot",  # after the tokens of the first event
    "tpot_n1",  # after the first token, as vLLM divides
    "itl",  # between tokens, where the server tells them apart
    "icl",  # between token-bearing events
    "e2el_due",
    "e2el_sent",
)
LOOP_WAITS = ("loop_stall", "gc_pause")  # of the loop, and of no request
WAITS = ("lag", "pool_wait", "connect", *LOOP_WAITS)
UNFINISHED = "unfinished"  # from due to the end of requests that were given up
DISTRIBUTIONS = (*LATENCIES, *WAITS, UNFINISHED)
TOKENS = (
    "planned_input_tokens",  # of ok requests, as the data set counts them
    "planned_output_tokens",
    # of ok requests, as the server was expected to count them, where that was known
    "predicted_server_input_tokens",
    "input_predicted",  # ok requests for which it was
    # of ok requests, as the server counts them; where it does not, the prediction, else the plan
    "input_tokens",
    # of ok requests: by usage, else by ids, else by a tokenizer, else one for each event
    "output_tokens",
    "cached_tokens",
    "cached_counted",  # ok requests for which the server counted cached tokens
    "stream_ns",  # first to last token of ok requests
    "decode_ns",  # the same of those that have a TPOT
    "decode_tokens",  # their output tokens after the first event, without hidden ones
    "usage_requests",  # ok requests whose output tokens come from usage
    "id_requests",  # ok requests whose output tokens are counted by token ids or logprobs
    "tokenizer_requests",  # ok requests whose output tokens a tokenizer has counted, after the run
    "event_requests",  # ok requests whose output tokens are counted events
    "usage_per_event",  # ok requests in which usage said how many tokens each event had
    "ids_per_event",  # ok requests in which token ids or logprobs did
    "imputed_gaps",  # gaps of `itl` that are equal parts of the gap between two events
    "token_events",  # token-bearing events of ok requests
    "token_reads",  # reads of the socket that brought any of them
    "inexact_events",  # token-bearing events of ok requests that may have come before their stamp
    "user_stamped_events",  # those of them without a stamp of the kernel's
    "reordered_events",  # those read only after segments came that were lost or overtaken
    "late_events",  # those of the others that were read late
    "unbounded_events",  # those whose times may be wrong by an unknown amount
    "content_events",
    "reasoning_events",
    "other_events",
    "silent_events",  # token-bearing events without text
    "unseen_tokens",  # tokens that usage counts beyond the events that were seen
    "hidden_tokens",  # those of them that usage calls reasoning, of answers that streamed none
    "surplus_events",  # events beyond the tokens that usage or a tokenizer counts
    "disagreeing_counts",  # ok requests whose prompt and completion tokens are not their total
    "disagreeing_tokens",  # by how many tokens
    "nan_events",  # events of ok requests in which a number was NaN or infinite
    "results",  # embeddings or scores of ok requests whose answers have no tokens
    "lost_token_events",  # token-bearing events of requests that were not ok
    # ok requests whose prompt tokens the server counted as predicted, else as planned
    "input_as_planned",
    "input_counted",  # ok requests whose prompt tokens were planned, and counted by the server
    # what it counted of them beyond prediction or plan; below 0 where it counted fewer
    "unexpected_input_tokens",
    # ok requests whose length was not planned: they repeated answers, or there was no tokenizer
    "unplanned_requests",
    "unplanned_input_tokens",  # their tokens, as the server counts them
    "unknown_input",  # those of them of which it does not count any
    "output_as_planned",  # ok requests that brought exactly the tokens asked
)
REQUESTS = (
    "good",  # requests that meet every --goodput limit, on the clock of --latency-from
    "good_sent",  # the same from sent, as vLLM means it
    "never_due",  # turns whose session had failed before
    # of a closed loop that time bounds: sent beyond those prepared at first, and asked before
    "repeated_prompts",
    "turns_without_token",  # later turns without the token that --session-token sends back
    "early",  # requests sent more than 50 us before they were due
    "disordered",  # records whose stamps are out of order
    "overlong_times",  # ok requests of which the server said longer times than were measured
    "unequal",  # ok requests whose first and last stamps do not agree with TTFT and E2EL
    "sojourn_ns",  # sent to closed, of all requests that were sent
    # so much of whose answer was unread at once that the server may have had to wait
    "window_filled",
    "late_ends",  # ok requests whose responses were open for over 50 ms after the last token
    "tail_ns",  # for how long these were
    "unnamed_ends",  # ok requests whose answers ended with [DONE] and without a finish reason
    "broken_off",  # that failed after a token had come, by an error in the stream or its early end
    "silent_streams",  # in whose streams no token came for SILENCE_NS
)
CONNECTIONS = (
    "warm_connections",  # open when the clock started
    "late_connections",  # requests that had to open one
)
COUNTERS = (*TOKENS, *REQUESTS, *CONNECTIONS)
# Counters that no record has.
OF_LOOP = ("warm_connections", "repeated_prompts", "turns_without_token")
# One request that was sent more than once: index, attempts, HTTP status of the first attempt. In
# ns: the first attempt from sent to closed, from ready to the last attempt, and TTFT and E2EL from
# due, -1 if it is not ok.
RETRY_ROW = struct.Struct("=IHHqqqq")
RETRY_COLUMNS = (
    *(("index", "u4"), ("attempts", "u2"), ("first_status", "u2")),
    *(("first_ns", "i8"), ("retried_ns", "i8"), ("ttft_ns", "i8"), ("e2el_ns", "i8")),
)
# One request: index, sent, closed, TTFT, E2EL, TPOT, input tokens and those of them that were
# cached; times in ns. Latencies are exact to 7 digits, since rows may be millions.
ROW = struct.Struct("=Iqqfffii")
ROW_COLUMNS = (
    *(("index", "u4"), ("sent", "i8"), ("closed", "i8")),
    *(("ttft", "f4"), ("e2el", "f4"), ("tpot", "f4"), ("input", "i4"), ("cached", "i4")),
)


def requests_of(name: str, count: Callable[[str], int]) -> int:
    """Return how many requests the values of a distribution come from; for gaps, those that ended.

    Args:
        name: One of the DISTRIBUTIONS.
        count: How many values each of them has.
    """
    return min(count(name), count("e2el_due")) if name in GAPS else count(name)


class Column:
    """One of the ROW_COLUMNS of a snapshot's rows as an array, which is made once."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, snapshot: Snapshot, owner: type) -> Int64s:
        column: Int64s = _array(snapshot.rows, [*ROW_COLUMNS])[self._name].astype("i8")
        vars(snapshot)[self._name] = column
        return column


class SampledAnswer(NamedTuple):
    """One of the answers whose text was tokenized after the run.

    Attributes:
        counted: Its tokens by usage, without those that usage itself calls hidden.
        streamed: The tokens of its text.
        after_first: Those of them that came after the first event; 0 where there was but one event.
        span_ns: From its first event to its last.
        least_span_ns, greatest_span_ns: What that may truly have been.
    """

    counted: int
    streamed: int
    after_first: int
    span_ns: int
    least_span_ns: int
    greatest_span_ns: int


class LoopTotals(Struct, frozen=True, kw_only=True):
    """What a snapshot holds that its records do not.

    Attributes:
        scheduled: How many requests were to be sent; where time alone bounded the run, how many
            were sent.
        warm_connections, repeated_prompts, turns_without_token: As in COUNTERS.
        partial: Why the run ended early, or None.
        histograms: LOOP_WAITS, ns.
    """

    scheduled: int
    warm_connections: int
    repeated_prompts: int
    turns_without_token: int
    partial: str | None
    histograms: dict[str, Histogram]

    @classmethod
    def of(cls, snapshot: Snapshot) -> LoopTotals:
        """Take the totals from a snapshot, for a trailer."""
        return cls(
            scheduled=snapshot.scheduled,
            **{name: snapshot.counters[name] for name in OF_LOOP},
            partial=snapshot.partial,
            histograms={name: snapshot.histograms[name] for name in LOOP_WAITS},
        )


class Snapshot(Struct, frozen=True, dict=True):
    """Everything measured so far; times are ns, those in arrays count from `start_ns`.

    Attributes:
        start_ns: When the clock of the run started, the same for all parts.
        scheduled: Requests that were to be sent.
        outcomes: Requests by their class, "status(404)" spelled out.
        examples: For each class that is not ok, the first few requests: index, phase, detail.
        finishes: Finish reasons of ok requests, and how many had each.
        early_stops: What ended the ok requests that brought fewer tokens than asked, and how many
            it ended.
        said_times: Who said times of the server's (`core.server_times`), and of how many ok
            requests.
        unread: What no rule took of any answer, by its name: how often it came, and an example.
        counters: The sums named in COUNTERS.
        histograms: The DISTRIBUTIONS, in ns.
        lower, upper: The LATENCIES, in ns, if every value were the least and the greatest that it
            may truly have been.
        rows: A ROW for each request that a transport was given and that has ended, in any order.
            Its columns are `index` to `cached`, shape (rows,).
        index: The number of each request.
        sent, closed: When it was sent, and when it ended, ns; `sent` is negative where it never
            was.
        ttft, e2el: Its latencies, ns on the clock of --latency-from, to 7 digits; FAILED, CANCELLED
            or LEFT if it is not ok.
        tpot: Its TPOT, ns, as `vllm bench serve` divides; negative where there is none.
        input: Its input tokens, as the server counts them, else as expected; negative if unknown.
        cached: Those of them that the server took from its cache; negative if unknown.
        token_counts: Output tokens per BIN_NS of the run; `bins` is the same as a NumPy array.
        timeline: TTFT and gaps between events over time.
        silences: Of the first few requests with such a silence: index, and the longest: since_s and
            for_s, seconds.
        partial: Why the run ended early, or None.
        details: One entry per request, as `index`, or None.
        retries: A RETRY_ROW for each request that was sent more than once, in any order.
        sample: The answers whose text was tokenized after the run, as usage counts more than events
            showed; ascending.
        targets: Where there are several targets, what each of them did: snapshots of parts, of
            which this is the sum.
        classes: The same of each class of requests.
    """

    start_ns: int
    scheduled: int
    outcomes: dict[str, int]
    examples: dict[str, list[dict[str, Any]]]
    finishes: dict[str, int]
    early_stops: dict[str, int]
    counters: dict[str, int]
    histograms: dict[str, Histogram]
    lower: dict[str, Histogram]
    upper: dict[str, Histogram]
    rows: bytes
    token_counts: array[int]
    timeline: Timeline
    silences: tuple[dict[str, Any], ...] = ()
    unread: dict[str, tuple[int, str]] = {}
    said_times: dict[str, int] = {}
    partial: str | None = None
    details: Details | None = None
    retries: bytes = b""
    sample: tuple[SampledAnswer, ...] = ()
    targets: tuple[Snapshot, ...] = ()
    classes: tuple[Snapshot, ...] = ()

    EXAMPLES = 3

    index = Column()
    sent = Column()
    closed = Column()
    ttft = Column()
    e2el = Column()
    tpot = Column()
    input = Column()
    cached = Column()

    def requests_of(self, name: str) -> int:
        """Return how many requests the values of one of the DISTRIBUTIONS come from."""
        return requests_of(name, lambda distribution: self.histograms[distribution].count)

    @property
    def ended(self) -> int:
        """Requests that have an outcome."""
        return sum(self.outcomes.values())

    @property
    def ok(self) -> int:
        """Requests that ended well."""
        return self.outcomes.get("ok", 0)

    @property
    def not_ok(self) -> int:
        """Requests that failed, without turns that were never due."""
        return ended_by(self.outcomes, Cause.SERVER, Cause.CLIENT)

    @property
    def disconnected(self) -> int:
        """Requests whose users left after they were sent; further turns of their sessions were
        not sent at all.
        """
        return int(((self.ttft == LEFT) & (self.sent >= 0)).sum())

    @property
    def never_sent(self) -> int:
        """Requests that the end of the run kept from being sent."""
        return self.ended - len(self.rows) // ROW.size

    @property
    def cut_off(self) -> int:
        """Requests that the end of the run cancelled in flight; a turn after one that failed was
        not due at all.
        """
        return ended_by(self.outcomes, Cause.RUN) - self.counters["never_due"] - self.never_sent

    @property
    def retried(self) -> NDArray[Any]:
        """`retries` as an array with the fields RETRY_COLUMNS, shape (requests,); not to be
        written to.
        """
        return _array(self.retries, [*RETRY_COLUMNS])

    @property
    def bins(self) -> Int64s:
        """Output tokens per BIN_NS of the run, shape (bins,); not to be written to."""
        return _array(self.token_counts, "i8")

    @property
    def failed(self) -> Int64s:
        """When those requests ended that failed, ascending; none that was cancelled."""
        ends: Int64s = self.closed[self.ttft == FAILED]
        ends.sort()
        return ends

    @property
    def failures(self) -> Failures:
        """How many of those that have ended failed."""
        return Failures.among(self.outcomes, self.counters["never_due"])

    def on_clock(self, start_ns: int) -> Snapshot:
        """Return a copy whose clock started at `start_ns`: times of another machine mean nothing
        but relative to it.
        """
        details = self.details
        later_s = (start_ns - self.start_ns) / 1e9
        if details is not None:
            details = structs.replace(
                details, start_times=[at_s + later_s for at_s in details.start_times]
            )
        targets, classes = (
            tuple(part.on_clock(start_ns) for part in parts)
            for parts in (self.targets, self.classes)
        )
        return structs.replace(
            self, start_ns=start_ns, details=details, targets=targets, classes=classes
        )

    def merge(self, other: Snapshot) -> Snapshot:
        """Combine two parts; associative, and commutative but for the order of the rows."""
        if self.start_ns != other.start_ns:
            raise ValueError("parts of different runs")
        changes: dict[str, Any] = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("scheduled", "rows", "retries")
        }
        for name in ("outcomes", "finishes", "early_stops", "said_times"):
            changes[name] = add_counts(getattr(self, name), getattr(other, name))
        for name in ("counters", "histograms", "lower", "upper"):
            theirs = getattr(other, name)
            changes[name] = {key: value + theirs[key] for key, value in getattr(self, name).items()}
        for name in ("targets", "classes"):
            pairs = zip(getattr(self, name), getattr(other, name), strict=True)
            changes[name] = tuple(part.merge(same) for part, same in pairs)
        return structs.replace(
            self,
            examples={
                outcome: first_examples(
                    self.examples.get(outcome, []) + other.examples.get(outcome, [])
                )
                for outcome in sorted(self.examples.keys() | other.examples.keys())
            },
            token_counts=array(
                "q", map(sum, zip_longest(self.token_counts, other.token_counts, fillvalue=0))
            ),
            timeline=self.timeline.merge(other.timeline),
            silences=tuple(first_examples(self.silences + other.silences)),
            unread=add_unread(self.unread, other.unread),
            partial=self.partial or other.partial,
            details=self.details + other.details if self.details and other.details else None,
            sample=tuple(sorted(self.sample + other.sample)),
            **changes,
        )


def first_examples(examples: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the few that are kept: the first of the schedule, not the first to end."""
    # So parts merge into what the whole, and its records, would have kept.
    return sorted(examples, key=lambda example: int(example["index"]))[: Snapshot.EXAMPLES]


def _array(data: bytes | array[int], dtype: Any) -> NDArray[Any]:
    import numpy as np  # never in a measuring process: it takes a tenth of a second, and 20 MB

    return np.frombuffer(data, dtype=dtype)
