"""Sessions: the turns that follow others, and the answers that their bodies repeat."""

import json

from loadgen.core.outcome import OUR_FAULTS, Outcome
from loadgen.core.record import Record
from loadgen.core.sse_event import SURROGATE
from loadgen.workload.prompt import ANSWER_PLACEHOLDER
from loadgen.workload.request_store import Requests


class Sessions:
    """The state of the sessions of one load.

    Args:
        requests: The requests of the run; the turns of a session are neighbours.
        end: One beyond the last request of this load.
    """

    def __init__(self, requests: Requests, end: int) -> None:
        self._requests, self._end = requests, end
        self._answers: dict[int, list[bytes]] = {}  # so far, by the number of the turn that comes next

    def body(self, index: int) -> bytes:
        """Return the JSON body of request `index`, with the answers to the turns before it."""
        parts = self._requests.body(index).split(ANSWER_PLACEHOLDER)
        if len(parts) == 1:
            return parts[0]
        # Every hole stands for an answer to an earlier turn.
        given = self._answers.get(index, [])
        pieces = [piece for pair in zip(parts[1:], given, strict=True) for piece in reversed(pair)]
        return b"".join([parts[0], *pieces])

    def next_due_ns(self, record: Record) -> int | None:
        """Return when the next turn is due, now that `record` has ended well; None where there is none."""
        index = record.index + 1
        given = self._answers.pop(record.index, [])
        think_ns = self._requests.think_ns(index) if index < self._end else None
        if think_ns is None:
            return None
        if self._requests.repeats_answers:
            self._answers[index] = [*given, _sendable(record)]
        return record.closed + think_ns

    def given_up(self, record: Record) -> list[Record]:
        """Return records of the turns that will never be due, now that `record` has failed.

        Where that was a fault of the client's own, or the user has left, they have the same outcome.
        """
        self._answers.pop(record.index, None)
        index, given_up = record.index + 1, list[Record]()
        same = (*OUR_FAULTS, Outcome.DISCONNECTED)
        outcome = record.outcome if record.outcome in same else Outcome.CANCELLED
        while index < self._end and self._requests.think_ns(index) is not None:
            turn = Record(index, *self._requests.tokens(index), record.closed)
            turn.turn, turn.class_number = record.turn + index - record.index, record.class_number
            turn.outcome, turn.closed, turn.target = outcome, record.closed, record.target
            turn.detail = f"never due: request {record.index} of its session ended as {record.outcome}"
            given_up.append(turn)
            index += 1
        return given_up


def _sendable(record: Record) -> bytes:
    """Return the answer as the inside of a JSON string that every parser takes: UTF-8 without lone surrogates."""
    if SURROGATE.search(record.answer):
        return json.dumps(record.answer_text)[1:-1].encode()
    return record.answer.decode("utf-8", "replace").encode()
