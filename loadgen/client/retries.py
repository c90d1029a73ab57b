"""`Retries`: requests that the server refused, until they are sent again."""

import time
from collections.abc import Callable
from typing import Self

from loadgen.client.alarm_queue import AlarmQueue
from loadgen.config.settings import RunSettings, seed_of
from loadgen.config.user_behavior import Retry
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.util.clock import NS_PER_S, Clock
from loadgen.workload.draws import uniforms

# The waits of OpenAI's Python client: what Retry-After says, up to a minute; else from half a
# second, doubled each time up to eight seconds, less up to a quarter, so that those refused
# together do not come back together.
MAX_RETRY_AFTER_S = 60.0
FIRST_WAIT_S = 0.5
MAX_WAIT_S = 8.0
JITTER = 0.25
UNAUTHORIZED = 401
# What all attempts of a request have in common, and what is kept of the first.
KEPT = (
    *("ready", "turn", "server_tokens", "class_number", "texts", "session_token"),
    "trace_line",
    *("keeps_text", "keeps_answer", "keeps_head"),
    *("end_after_tokens", "end_after_ns", "ends_as"),
)
OF_FIRST = ("sent", "closed", "status")


class Retries:
    """Holds back what is sent again, each until its time.

    Args:
        retry: What is sent again, and how often.
        seed: Of the waits.
        send: Sends the next attempt.
        clock: The clock of the waits.

    Attributes:
        unauthorized: How many of what was taken had status 401.
    """

    def __init__(
        self, retry: Retry, seed: int, send: Callable[[Record], None], clock: Clock
    ) -> None:
        self._retry = retry
        self._seed = seed
        self._waiting = AlarmQueue[Record](
            lambda refused, at_ns: send(next_attempt(refused, at_ns)), clock
        )
        self._is_closed = False
        self.unauthorized = 0

    @classmethod
    def from_settings(
        cls, settings: RunSettings, send: Callable[[Record], None], clock: Clock
    ) -> Self | None:
        """Create the retries of `--retry`; None without it.

        Raises:
            BadInput: Its value is invalid.
        """
        if settings.retry is None:
            return None
        return cls(Retry.parse(settings.retry), seed_of(settings, "arrivals"), send, clock)

    def take(self, record: Record) -> bool:
        """Take a request that has ended if it is to be sent again; return whether it is."""
        if record.outcome is not Outcome.STATUS or record.status not in self._retry.statuses:
            return False
        if self._is_closed or record.attempts >= self._retry.attempts:
            return False
        self.unauthorized += record.status == UNAUTHORIZED
        self._waiting.add(record.closed + int(self.wait_s(record) * NS_PER_S), record)
        return True

    def wait_s(self, record: Record) -> float:
        """Return how long after a refusal the request is sent again, s: the same for the same
        seed and attempt.
        """
        asked_s = retry_after_s(record.retry_after)
        if asked_s is not None and 0 < asked_s <= MAX_RETRY_AFTER_S:
            return asked_s
        (jitter,) = uniforms(1, self._seed, "retry", record.index, record.attempts)
        longest_s = min(FIRST_WAIT_S * 2.0 ** (record.attempts - 1), MAX_WAIT_S)
        return longest_s * (1 - JITTER * jitter)

    def close(self) -> list[Record]:
        """Send nothing again from now on; return the last attempts of those that wait."""
        self._is_closed = True
        return self._waiting.close()


def next_attempt(refused: Record, at_ns: int) -> Record:
    """Return the record of the attempt at `at_ns` that follows one that was refused."""
    record = Record(refused.index, refused.input_tokens, refused.output_tokens, refused.due)
    for name in KEPT:
        setattr(record, name, getattr(refused, name))
    record.attempts = refused.attempts + 1
    record.retried_ns = at_ns - refused.ready
    for name in OF_FIRST:
        first = name if refused.attempts == 1 else f"first_{name}"
        setattr(record, f"first_{name}", getattr(refused, first))
    return record


def retry_after_s(value: str | None) -> float | None:
    """Read a Retry-After, seconds or a date, as the seconds from now; None if it is neither."""
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime  # rarely used, and slow to import

    try:
        return parsedate_to_datetime(value).timestamp() - time.time()
    except ValueError:
        return None
