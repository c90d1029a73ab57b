"""`OpenSessions`: the requests that follow others, and the answers that their bodies repeat."""

import json
from dataclasses import dataclass

from loadgen.core.outcome import OUR_FAULTS, Outcome
from loadgen.core.record import Record
from loadgen.core.sse_event import SURROGATE
from loadgen.workload.prompt import ANSWER_PLACEHOLDER
from loadgen.workload.request_store import Requests


@dataclass(slots=True)
class _Join:
    """A request that follows several, some of which have ended.

    Attributes:
        open: How many have not.
        last_ns: When the last of the others ended.
        is_lost: Whether one has failed, so that it will never be due.
    """

    open: int
    last_ns: int = 0
    is_lost: bool = False


class OpenSessions:
    """The sessions of one load of which a request has been sent, and another one is still to come.

    Args:
        requests: The requests of the run; those of a session are neighbors.
        end: One beyond the last request of this load.
    """

    def __init__(self, requests: Requests, end: int) -> None:
        self._requests, self._graph, self._end = requests, requests.graph(), end
        self._joins: dict[int, _Join] = {}  # by the number of the request
        self._left: dict[int, int] = {}  # requests of each session that have not ended, by the number of its first
        self._answers: dict[int, list[bytes]] = {}  # so far, by the number of the request that repeats them

    def body(self, index: int) -> bytes:
        """Return the JSON body of request `index`, with the answers of the conversation before it."""
        parts = self._requests.body(index).split(ANSWER_PLACEHOLDER)
        if len(parts) == 1:
            return parts[0]
        # Each placeholder stands for an answer to an earlier turn.
        given = self._answers.get(index, [])
        pieces = [piece for pair in zip(parts[1:], given, strict=True) for piece in reversed(pair)]
        return b"".join([parts[0], *pieces])

    def next_due(self, record: Record) -> list[tuple[int, int]]:
        """Return the number and due time of each request that `record` was the last to wait for; it has ended well."""
        self._count(record, 1)
        given, found = self._answers.pop(record.index, []), []
        for index in self._followers(record.index):
            join = self._ended(index, record.closed)
            repeats = self._requests.repeats_answers and self._graph.predecessors(index)[0] == record.index
            if repeats and not join.is_lost:
                self._answers[index] = [*given, _sendable(record)]
            if join.open == 0 and not join.is_lost:
                found.append((index, join.last_ns + self._requests.think_ns(index)))
        return found

    def given_up(self, record: Record) -> list[Record]:
        """Return records of the requests that will never be due, now that `record` has failed.

        Where that was a fault of the client's own, or the user has left, they have the same outcome.
        """
        lost, ended = list[int](), [record.index]
        while ended:
            before = ended.pop()
            self._answers.pop(before, None)
            for index in self._followers(before):
                join = self._ended(index, record.closed)
                if not join.is_lost:
                    join.is_lost = True
                    lost.append(index)
                    ended.append(index)
        self._count(record, 1 + len(lost))
        same = (*OUR_FAULTS, Outcome.DISCONNECTED)
        outcome = record.outcome if record.outcome in same else Outcome.CANCELLED
        return [self._never_due(index, record, outcome) for index in sorted(lost)]

    def is_over(self, record: Record) -> bool:
        """Return whether all requests of the session of `record` have ended, or are given up."""
        return record.index - record.turn not in self._left

    def _count(self, record: Record, ended: int) -> None:
        """Note that so many requests of the session of `record` have ended."""
        first = record.index - record.turn
        left = (self._left.pop(first, None) or self._size(first)) - ended
        if left:
            self._left[first] = left

    def _size(self, first: int) -> int:
        size = 1
        while first + size < self._end and self._graph.predecessors(first + size):
            size += 1
        return size

    def _never_due(self, index: int, record: Record, outcome: Outcome) -> Record:
        never = Record(index, *self._requests.tokens(index), record.closed)
        never.turn, never.class_number = record.turn + index - record.index, record.class_number
        never.outcome, never.closed, never.target = outcome, record.closed, record.target
        never.detail = f"never due: request {record.index} of its session ended as {record.outcome}"
        return never

    def _ended(self, index: int, at_ns: int) -> _Join:
        """Note that one of the requests that `index` follows has ended, and return the state of the others."""
        join = self._joins.pop(index, None) or _Join(len(self._graph.predecessors(index)))
        join.open -= 1
        join.last_ns = max(join.last_ns, at_ns)
        if join.open:
            self._joins[index] = join
        return join

    def _followers(self, index: int) -> list[int]:
        return [follower for follower in self._graph.followers(index) if follower < self._end]


def _sendable(record: Record) -> bytes:
    """Return the answer as the inside of a JSON string that every parser takes: UTF-8 without lone surrogates."""
    if SURROGATE.search(record.answer):
        return json.dumps(record.answer_text)[1:-1].encode()
    return record.answer.decode("utf-8", "replace").encode()
