"""What few requests of a run have: failures, retries, silences, and what no rule took."""

from collections import Counter
from itertools import pairwise
from typing import Any

from loadgen.core.histogram import Histogram
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.failures import SILENCE_NS, failure_class
from loadgen.metrics.snapshot import RETRY_ROW, Snapshot, first_examples
from loadgen.metrics.sums import add_unread

GIVEN_UP = (Outcome.TIMEOUT, Outcome.TIMEOUT_FIRST_TOKEN, Outcome.STALLED, Outcome.CANCELLED)


class Incidents:
    """Counts the incidents of requests; `core.RecordCounter` says which requests have any.

    Args:
        start_ns: When the clock of the run starts.
        unfinished: Gets the time from due to the end of requests that were given up, ns.

    Attributes:
        failures: Failed requests by their class.
        examples, silences, unread: As in `Snapshot`.
        retries: RETRY_ROW after RETRY_ROW.
        silent_streams: Streams in which no token came for SILENCE_NS.
    """

    def __init__(self, start_ns: int, unfinished: Histogram) -> None:
        self._start_ns = start_ns
        self._unfinished = unfinished
        self.failures = Counter[str]()
        self.examples: dict[str, list[dict[str, Any]]] = {}
        self.retries = bytearray()
        self.silences: list[dict[str, Any]] = []
        self.silent_streams = 0
        self.unread: dict[str, tuple[int, str]] = {}

    def add_failure(self, record: Record) -> None:
        """Count a request that did not end well."""
        name = failure_class(record)
        self.failures[name] += 1
        self.add_example(name, record.index, phase(record), record.detail or "")
        if record.sent and record.outcome in GIVEN_UP:
            self._unfinished.record(record.closed - record.due)

    def add_unread(self, record: Record) -> None:
        """Count what no rule took of an answer."""
        self.unread = add_unread(self.unread, record.unread or {})

    def add_retried(self, record: Record) -> None:
        """Keep the attempts of a request that was sent several times."""
        ok = record.outcome is Outcome.OK
        since_due = [
            max(at_ns - record.due, 0) if ok else -1
            for at_ns in (record.first_token, record.last_token)
        ]
        first_ns = record.first_closed - record.first_sent
        self.retries += RETRY_ROW.pack(
            record.index,
            record.attempts,
            record.first_status,
            first_ns,
            record.retried_ns,
            *since_due,
        )

    def add_silence(self, record: Record) -> None:
        """Count a stream that was open for SILENCE_NS, if no token came for so long: from one to
        the next, or until it closed.
        """
        stamps = [*memoryview(record.marks).cast("B").cast("q"), record.closed]
        longest_ns, since_ns = max((after - before, -before) for before, after in pairwise(stamps))
        if longest_ns < SILENCE_NS:
            return
        self.silent_streams += 1
        since_s = (-since_ns - self._start_ns) / 1e9
        silence = {"index": record.index, "since_s": since_s, "for_s": longest_ns / 1e9}
        self.silences = first_examples([*self.silences, silence])

    def add_example(self, name: str, index: int, reached: str, detail: str) -> None:
        """Keep a failure of the class `name`, if it is among the first.

        Args:
            name: The class.
            index: The number of the request.
            reached: How far it got, as `phase` says.
            detail: Why it failed.
        """
        examples = self.examples.get(name, [])
        if len(examples) < Snapshot.EXAMPLES or index < examples[-1]["index"]:
            self.examples[name] = first_examples(
                [*examples, {"index": index, "phase": reached, "detail": detail}]
            )


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
