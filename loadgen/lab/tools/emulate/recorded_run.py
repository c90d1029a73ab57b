"""RecordedRun: the requests of a file of records as arrays, and all events of their answers."""

from array import array
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from loadgen.config.settings import RunSettings
from loadgen.core.event_flags import NAMES, TOKENS
from loadgen.core.outcome import BROKEN_AFTER_END, NO_FINISH_REASON, Outcome
from loadgen.core.record import Record
from loadgen.errors import BadInput
from loadgen.metrics.incidents import GIVEN_UP
from loadgen.metrics.throughput import most_at_once
from loadgen.util.arrays import Int64s
from loadgen.workload import endpoints
from loadgen.workload.endpoints.generation import GENERATE
from loadgen.workload.target import is_chat

Bools = NDArray[np.bool_]
T = TypeVar("T")
COLUMNS = (
    *("due", "sent", "connect_ns", "closed", "input_tokens", "output_tokens"),
    *("prompt_tokens", "completion_tokens", "first_tokens"),
)


def event_selection(predicate: Callable[[Int64s], Bools | Int64s]) -> bytes:
    """Return a selection of events by their flags (`loadgen.core.event_flags`): a byte, 0 or 1,
    per set of flags.

    Args:
        predicate: Takes all sets of flags at once; 0 and False select no event.
    """
    return predicate(np.arange(sum(NAMES.values()) + 1)).astype(np.bool_).tobytes()


TOKEN = event_selection(lambda flags: flags & TOKENS)


@dataclass(frozen=True, eq=False)
class SelectedEvents:
    """The events of a selection, request by request.

    Attributes:
        index: Their positions among all events, ascending.
        at: When they arrived, CLOCK_MONOTONIC ns.
        bounds: Where those of each request begin in `index`, and the total; shape (requests + 1,).
    """

    index: Int64s
    at: Int64s
    bounds: Int64s

    @property
    def count(self) -> Int64s:
        """Number of events of each request."""
        return np.diff(self.bounds)

    @property
    def first(self) -> Int64s:
        """When the first event of each request arrived; 0 without events."""
        return self._at(self.bounds[:-1])

    @property
    def last(self) -> Int64s:
        """When the last event of each request arrived; 0 without events."""
        return self._at(self.bounds[1:] - 1)

    def _at(self, position: Int64s) -> Int64s:
        if not len(self.at):
            return np.zeros_like(position)
        return np.where(self.count > 0, self.at[np.clip(position, 0, len(self.at) - 1)], 0)


class RecordedRun:
    """The requests and events of a run, for tools with other definitions.

    Args:
        settings: The settings of the run.
        start_ns: When its clock started, CLOCK_MONOTONIC ns.
        records: All requests.

    Attributes:
        chat: Whether the run used chat completions.
        native: Whether it used SGLang's own /generate; else, and if it is no chat, completions.
        due, sent, closed, ...: One entry per request, int64; see `loadgen.core.record.Record`.
            `expected` is the number of tokens that the server should count in the prompt, `tokens`
            the number that loadgen counts in the answer.
        ok: Whether the request succeeded.
        complete: Whether the HTTP response came to its end, whatever was in it.
        has_error: Whether the stream held an error object.
        abandoned: Whether loadgen gave the request up, so that its end is unknown.
        select: Of 10**5 requests each holds a gigabyte.

    Raises:
        BadInput: A record does not hold the events of its stream, or the run used an API whose
            events the tools read in ways that are not known here.
    """

    def __init__(self, settings: RunSettings, start_ns: int, records: Iterable[Record]) -> None:
        if endpoints.find(settings).dialect is not None:
            problem = (
                f"what the tools print for the backend {endpoints.name_of(settings)} is not known"
            )
            raise BadInput("--as", problem, "name a run of chat, completions or /generate")
        self.settings = settings
        self.start_ns = start_ns
        self.chat = is_chat(settings)
        self.native = endpoints.find(settings) is GENERATE
        self._at = array("q")
        self._flags = array("h")
        self._event_tokens = array("i")
        self._has_event_tokens = False
        rows = []
        offsets = [0]
        for record in records:
            self._add(record)
            offsets.append(len(self._at))
            rows.append(
                [
                    *(getattr(record, name) for name in COLUMNS),
                    record.expected_tokens,
                    record.answer_tokens,
                ]
            )
            outcome = record.outcome
            has_error = outcome is Outcome.STREAM_ERROR
            detail = record.detail or ""
            unfinished = outcome is Outcome.TRUNCATED and detail.startswith(NO_FINISH_REASON)
            ended = unfinished or outcome in (Outcome.OK, Outcome.EMPTY)
            ended = ended and detail != BROKEN_AFTER_END
            complete = record.status == 200 and (ended or has_error)
            rows[-1] += [outcome is Outcome.OK, complete, has_error, outcome in GIVEN_UP]
        table = np.array(rows, dtype=np.int64).reshape(len(rows), len(COLUMNS) + 6).T
        columns: list[Int64s] = list(table)
        self.due, self.sent, self.connect_ns, self.closed, self.input_tokens, self.output_tokens = (
            columns[:6]
        )
        (
            self.prompt_tokens,
            self.completion_tokens,
            self.first_tokens,
            self.expected,
            self.tokens,
        ) = columns[6:11]
        self.ok, self.complete, self.has_error, self.abandoned = (
            column.astype(bool) for column in columns[11:]
        )
        self.at = np.frombuffer(self._at, dtype=np.int64)
        self.flags = np.frombuffer(self._flags, dtype=np.int16)
        self.offsets = np.array(offsets)
        self._cache: dict[Hashable, Any] = {}
        self.select = lru_cache(maxsize=2)(self._select)

    def __len__(self) -> int:
        return len(self.due)

    @property
    def event_tokens(self) -> Int64s | None:
        """Number of tokens of each event; None if the server did not count them, so that each is
        taken for one.
        """
        return (
            np.frombuffer(self._event_tokens, dtype=np.int32).astype(np.int64)
            if self._has_event_tokens
            else None
        )

    @property
    def prompts(self) -> Int64s:
        """Number of tokens of each prompt: as the server counted them, else as expected."""
        return np.where(self.prompt_tokens >= 0, self.prompt_tokens, self.expected)

    @property
    def peak_in_flight(self) -> float:
        """Maximum number of requests in flight."""
        sent = self.sent > 0
        return float(most_at_once(self.sent[sent], self.closed[sent]))

    def _add(self, record: Record) -> None:
        stream = record.stream
        marks = record.marks
        counts = record.token_counts
        at = 0
        if stream is None:
            problem = f"request {record.index} has no events of its stream"
            raise BadInput(
                "--as",
                problem,
                "record the run again: older files, and streams of too many events, have none",
            )
        self._has_event_tokens |= counts is not None
        if record.outcome is Outcome.STREAM_ERROR:
            stream = [*stream, (0, record.closed)]  # the error itself, which has no other flags
        for flags, value in stream:
            if flags & TOKENS:
                self._at.frombytes(marks[8 * at : 8 * (at + value)])
                self._flags.extend(array("h", [flags]) * value)
                self._event_tokens.extend(
                    [1] * value if counts is None else counts[at : at + value]
                )
                at += value
            else:
                self._at.append(value)
                self._flags.append(flags)
                self._event_tokens.append(0)

    def _select(self, selection: bytes) -> SelectedEvents:
        index = np.flatnonzero(np.frombuffer(selection, dtype=np.bool_)[self.flags])
        return SelectedEvents(index, self.at[index], np.searchsorted(index, self.offsets))

    def seconds_since(self, begin: int) -> float:
        """Return the time from `begin` until the last request ended, in s, refused ones
        included; 0 if none ended.
        """
        closed = self.closed[~self.abandoned]
        return float(closed.max() - begin) / 1e9 if len(closed) else 0.0

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returns, computed once for a `key`, which holds all that it depends
        on besides the run.
        """
        if key not in self._cache:
            self._cache[key] = make()
        value: T = self._cache[key]
        return value

    def has_event(self, selection: bytes) -> Bools:
        """Tell which requests have an event of a selection, shape (requests,)."""
        return self.select(selection).count > 0
