"""RequestColumns: the answered requests of a run as columns of numbers."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.util.arrays import Bools, Floats, Int64s

MS = 1e-6  # a ns, ms
HEADS_AT_PROMPT = "llamacpp"  # sends its headers when it begins the prompt, and says no queue
MAX_EVENTS = 4_000_000  # of which the times are kept: 100 MB


class RequestColumns(Struct, frozen=True):
    """The requests that ended well with tokens that have times, in the order of their numbers.

    Times are CLOCK_MONOTONIC ns, lengths ns; shape (n,) unless another one is said.

    Attributes:
        due, ready, sent, first, last: As in a `Record`; `first` and `last` are those of tokens.
        retried, connect: How long it waited to be sent again, and for a connection.
        prompt, cached: Prompt tokens that the server had not cached, and those that it had.
        tokens: Tokens of the answer that were streamed.
        target: The number of its server.
        lost: Events and packets of its answer that came out of order, and segments sent again.
        round_trip: The shortest of its connection; 0: not known.
        queue, prefill: What the server says that it waited, and that its prompt took; -1: nothing.
        dns, tcp, tls: What opening its connection was.
        turn: Its place in its session, from 0; -1: it is in none.
        begin: Where its events begin in the columns of events, shape (n + 1,).
        event, earliest: When each event with tokens came, and came at the earliest, shape (e,).
        event_tokens: Tokens of each event, shape (e,).
        uncounted: Whether events bear more tokens than they say, which are spread over them.
        others: Number of requests of the run that are not among these.
    """

    due: Int64s
    ready: Int64s
    sent: Int64s
    first: Int64s
    last: Int64s
    retried: Int64s
    connect: Int64s
    prompt: Int64s
    cached: Int64s
    tokens: Floats
    target: Int64s
    lost: Int64s
    round_trip: Int64s
    queue: Int64s
    prefill: Int64s
    dns: Int64s
    tcp: Int64s
    tls: Int64s
    turn: Int64s
    begin: Int64s
    event: Int64s
    earliest: Int64s
    event_tokens: Floats
    uncounted: Bools
    others: int

    @classmethod
    def of(cls, records: Iterable[Record]) -> "RequestColumns":
        """Read them from the records of a run.

        Raises:
            BadInput: A record cannot be read.
        """
        rows: list[_Row] = []
        events: dict[int, _Events] = {}
        others = count = 0
        for record in records:
            has_times = record.events and not record.is_whole and record.results < 0
            if record.outcome is not Outcome.OK or not has_times:
                others += 1
                continue
            rows.append(_Row.of(record))
            count += record.events
            if count > MAX_EVENTS:
                events = {}
            else:
                events[record.index] = _Events.of(record)
        rows.sort()
        table = np.array(rows, dtype=np.int64).reshape(len(rows), len(_Row._fields)).T
        columns = dict(zip(_Row._fields, table, strict=True))
        begun = columns.pop("begun")
        if (is_begun := begun >= 0).any():
            # What all of them take is no queue.
            columns["queue"] = np.where(is_begun, begun - begun[is_begun].min(), columns["queue"])
        kept = [events[row.number] for row in rows] if events else []
        lengths = np.array([len(stream.tokens) for stream in kept], dtype=np.int64)
        if not kept:
            lengths = np.zeros(len(rows), dtype=np.int64)
        begin = np.append(0, np.cumsum(lengths))
        event_tokens = np.concatenate([np.empty(0), *(stream.tokens for stream in kept)])
        said = np.diff(np.append(0.0, np.cumsum(event_tokens))[begin])
        tokens = np.maximum(columns["tokens"], said)
        factor = np.divide(tokens, said, out=np.ones(len(rows)), where=said > 0)
        del columns["number"], columns["tokens"]
        return cls(
            **columns,
            tokens=tokens,
            begin=begin,
            event=np.frombuffer(b"".join(stream.stamps for stream in kept), dtype=np.int64),
            earliest=np.frombuffer(b"".join(stream.earliest for stream in kept), dtype=np.int64),
            event_tokens=event_tokens * np.repeat(factor, lengths),
            uncounted=factor > 1,
            others=others,
        )

    def __len__(self) -> int:
        return len(self.due)

    @property
    def has_events(self) -> bool:
        """Whether the times of tokens are kept: there are at most MAX_EVENTS."""
        return len(self.event) > 0

    @property
    def stream(self) -> Int64s:
        """The place of the request of each event, shape (e,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.begin))

    @property
    def ttft_ms(self) -> Floats:
        """The time from sent to the first token, ms."""
        ttft_ms: Floats = np.multiply(self.first - self.sent, MS, dtype=np.float64)
        return ttft_ms

    @property
    def e2el_ms(self) -> Floats:
        """The time from due to the last token, ms."""
        e2el_ms: Floats = np.multiply(self.last - self.due, MS, dtype=np.float64)
        return e2el_ms


class _Row(NamedTuple):
    """What the columns have of a request beside its events."""

    number: int
    due: int
    ready: int
    sent: int
    first: int
    last: int
    retried: int
    connect: int
    prompt: int
    cached: int
    tokens: int
    target: int
    lost: int
    round_trip: int
    queue: int
    prefill: int
    dns: int
    tcp: int
    tls: int
    turn: int
    begun: int  # from sent until its prompt was begun, where the server says no queue; -1: unknown

    @classmethod
    def of(cls, record: Record) -> "_Row":
        prompt = record.prompt_tokens if record.prompt_tokens >= 0 else record.expected_tokens
        times = record.server_times or {}
        round_trip_us, _, out_of_order, sent_again = record.tcp_info or (0, 0, 0, 0)
        opening = record.connect_parts or {}
        cached = max(record.cached_tokens, 0)
        queue, prefill = (_said(times, name) for name in ("queue", "prefill"))
        begun = -1
        dns, tcp, tls = (opening.get(name, 0) for name in ("dns", "tcp", "tls"))
        if queue < 0 <= prefill and times["by"] == HEADS_AT_PROMPT:
            # Its headers leave a little after the prompt was begun.
            begun = max(0, min(record.first_byte, record.first_token - prefill) - record.sent)
        return cls(
            record.index,
            record.due,
            record.ready,
            record.sent,
            record.first_token,
            record.last_token,
            record.retried_ns,
            record.connect_ns,
            max(prompt, 0) - cached,
            cached,
            max(record.answer_tokens - record.hidden_tokens, record.events),
            record.target,
            record.reordered + max(out_of_order, 0) + max(sent_again, 0),
            1000 * max(round_trip_us, 0),
            queue,
            prefill,
            dns,
            tcp,
            tls,
            record.turn,
            begun,
        )


def _said(times: Mapping[str, Any], name: str) -> int:
    """A time by the server, ns; -1: it says nothing."""
    return int(times.get(name, -1))


class _Events(NamedTuple):
    """The events of a request: their stamps and earliest times as bytes, and their tokens."""

    stamps: bytes
    earliest: bytes
    tokens: Floats

    @classmethod
    def of(cls, record: Record) -> "_Events":
        counts = record.token_counts
        tokens = np.ones(record.events) if counts is None else np.array(counts, dtype=float)
        return cls(record.marks, record.earliest_marks, tokens)
