"""Run: the requests of a file of records as arrays, and the events of their answers one after the other."""

from array import array
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from loadgen.config.settings import RunSettings
from loadgen.core.event_flags import DONE, TOKENS
from loadgen.core.outcome import NO_FINISH_REASON, Outcome
from loadgen.core.record import Record
from loadgen.errors import BadInput
from loadgen.metrics.recorder import GIVEN_UP
from loadgen.metrics.throughput import most_at_once
from loadgen.util.arrays import Int64s
from loadgen.workload.target import is_chat

Bools = NDArray[np.bool_]
T = TypeVar("T")
COLUMNS = (
    *("due", "sent", "connect_ns", "closed", "input_tokens", "output_tokens"),
    *("prompt_tokens", "completion_tokens", "first_tokens"),
)
NEVER_KNOWN = (*GIVEN_UP, Outcome.DROPPED)


def which(says: Callable[[int], int]) -> bytes:
    """A selection of events by their flags (`loadgen.core.event_flags`): a table with a byte for each set of flags."""
    return bytes(bool(says(flags)) for flags in range(2 * DONE))


TOKEN = which(lambda says: says & TOKENS)


@dataclass(frozen=True, eq=False)
class Chosen:
    """The events of a selection, request by request.

    Attributes:
        index: Where they stand among all events, in order.
        at: When they came, CLOCK_MONOTONIC ns.
        bounds: Where those of each request begin, and at the end how many there are; shape (requests + 1,).
    """

    index: Int64s
    at: Int64s
    bounds: Int64s

    @property
    def count(self) -> Int64s:
        """How many each request has."""
        return np.diff(self.bounds)

    @property
    def first(self) -> Int64s:
        """When the first of each request came; 0 where it has none."""
        return self._at(self.bounds[:-1])

    @property
    def last(self) -> Int64s:
        """When the last of each request came; 0 where it has none."""
        return self._at(self.bounds[1:] - 1)

    def _at(self, position: Int64s) -> Int64s:
        if not len(self.at):
            return np.zeros_like(position)
        return np.where(self.count > 0, self.at[np.clip(position, 0, len(self.at) - 1)], 0)


class Run:
    """What was recorded of a run, as a tool with other definitions would have seen it.

    Args:
        settings: Of the run.
        start_ns: When its clock started, CLOCK_MONOTONIC ns.
        records: Every request.

    Attributes:
        chat: Whether chat completions were asked, else completions.
        due, sent, closed, ...: One entry per request, int64; see `loadgen.core.record.Record`. `expected` is what the
            server should count of the prompt, `tokens` what loadgen counts of the answer.
        ok: Whether it ended ok.
        whole: Whether the response came to its end as HTTP knows it, whatever stood in it.
        erred: Whether it brought an error object.
        unknown: Whether loadgen gave it up, so that nobody knows how it would have ended.

    Raises:
        BadInput: A record does not say what all events of its stream were.
    """

    def __init__(self, settings: RunSettings, start_ns: int, records: Iterable[Record]) -> None:
        self.settings, self.start_ns, self.chat = settings, start_ns, is_chat(settings)
        self._at, self._says, self._brings = array("q"), array("h"), array("i")
        self._told = False
        rows, offsets = [], [0]
        for record in records:
            self._add(record)
            offsets.append(len(self._at))
            rows.append([*(getattr(record, name) for name in COLUMNS), record.expected_tokens, record.answer_tokens])
            rows[-1] += _ending(record)
        table = np.array(rows, dtype=np.int64).reshape(len(rows), len(COLUMNS) + 6).T
        columns: list[Int64s] = list(table)
        self.due, self.sent, self.connect_ns, self.closed, self.input_tokens, self.output_tokens = columns[:6]
        self.prompt_tokens, self.completion_tokens, self.first_tokens, self.expected, self.tokens = columns[6:11]
        self.ok, self.whole, self.erred, self.unknown = (column.astype(bool) for column in columns[11:])
        self.at = np.frombuffer(self._at, dtype=np.int64)
        self.says = np.frombuffer(self._says, dtype=np.int16)
        self.offsets = np.array(offsets)
        self._remembered: dict[Hashable, Any] = {}
        self.chosen = lru_cache(maxsize=2)(self._choose)  # of 10**5 requests each holds a gigabyte

    def __len__(self) -> int:
        return len(self.due)

    @property
    def brings(self) -> Int64s | None:
        """How many tokens each event brought; None where nobody told more than that each brings one."""
        return np.frombuffer(self._brings, dtype=np.int32).astype(np.int64) if self._told else None

    @property
    def prompts(self) -> Int64s:
        """The tokens of each prompt: as the server counted them, else as it should."""
        return np.where(self.prompt_tokens >= 0, self.prompt_tokens, self.expected)

    @property
    def most_in_flight(self) -> float:
        """The most requests that were in flight at one moment."""
        sent = self.sent > 0
        return float(most_at_once(self.sent[sent], self.closed[sent]))

    def _add(self, record: Record) -> None:
        stream, marks, counts, at = record.stream, record.marks, record.token_counts, 0
        if stream is None:
            problem = f"request {record.index} does not say what the events of its stream were"
            raise BadInput("--as", problem, "record the run again: older files, and streams of too many events, do not")
        if counts is not None and not self._told:
            self._told = True
            self._brings.extend(1 if says & TOKENS else 0 for says in self._says)
        for says, value in stream:
            if not says & TOKENS:
                self._at.append(value)
                self._says.append(says)
                if self._told:
                    self._brings.append(0)
                continue
            self._at.frombytes(marks[8 * at : 8 * (at + value)])
            self._says.extend(array("h", [says]) * value)
            if self._told:
                self._brings.extend([1] * value if counts is None else counts[at : at + value])
            at += value
        if record.outcome is Outcome.STREAM_ERROR:  # the event that said so, which says nothing else
            self._at.append(record.closed)
            self._says.append(0)
            if self._told:
                self._brings.append(0)

    def _choose(self, table: bytes) -> Chosen:
        index = np.flatnonzero(np.frombuffer(table, dtype=np.bool_)[self.says])
        return Chosen(index, self.at[index], np.searchsorted(index, self.offsets))

    def seconds_since(self, begin: int) -> float:
        """From `begin` until the last request has ended, one that found no server too, in s; 0 where none has."""
        closed = self.closed[~self.unknown]
        return float(closed.max() - begin) / 1e9 if len(closed) else 0.0

    def remembered(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes, made once: `key` holds all that it depends on, beside the run."""
        if key not in self._remembered:
            self._remembered[key] = make()
        found: T = self._remembered[key]
        return found

    def any(self, table: bytes) -> Bools:
        """Which requests have an event of a selection."""
        return self.chosen(table).count > 0


def _ending(record: Record) -> list[bool]:
    """ok, whole, erred and unknown."""
    outcome = record.outcome
    erred = outcome is Outcome.STREAM_ERROR
    unfinished = outcome is Outcome.TRUNCATED and record.detail == NO_FINISH_REASON
    ended = unfinished or outcome in (Outcome.OK, Outcome.EMPTY)
    return [outcome is Outcome.OK, record.status == 200 and (ended or erred), erred, outcome in NEVER_KNOWN]
