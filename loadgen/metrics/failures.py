"""How many requests of a run failed, by fault of the server and of the client; whether a server
lets anyone connect.
"""

from collections.abc import Mapping
from typing import Self

from msgspec import Struct

from loadgen.core.outcome import Cause, Outcome, ended_by
from loadgen.core.record import Record

PATIENCE_S = 5.0  # a server that only refused for so long counts as gone
SILENCE_NS = 60_000_000_000  # a stream without a token for so long is reported to the user


class Failures(Struct, frozen=True):
    """Failed requests, and those among which they count.

    A request that the end of the run or its user ended counts nowhere: its end is unknown. A turn
    that was never due, since one before it had failed, is as much of a failure as that one, of the
    server or of the client: after a fault of the client it has that outcome, else it is cancelled.

    Attributes:
        of: Requests that ended, but for those that the end of the run or their users ended.
        server: Those that the server failed.
        client: Those that the client never sent, by a fault of its own.
    """

    of: int
    server: int
    client: int

    @classmethod
    def among(cls, outcomes: Mapping[str, int], never_due: int) -> Self:
        """Count the failures among requests by outcome.

        Args:
            outcomes: Requests by outcome; "status(404)" spells an HTTP status out.
            never_due: Turns among the cancelled that were never due, since the server had failed
                one before them.
        """
        server = ended_by(outcomes, Cause.SERVER) + never_due
        client = ended_by(outcomes, Cause.CLIENT)
        return cls(ended_by(outcomes, Cause.ANSWER) + server + client, server, client)

    @property
    def failed(self) -> int:
        """All that failed."""
        return self.server + self.client

    @property
    def server_rate(self) -> float | None:
        """The share that the server failed; None without requests."""
        return self.server / self.of if self.of else None

    @property
    def client_rate(self) -> float | None:
        """The share that the client failed to send; None without requests."""
        return self.client / self.of if self.of else None


def failure_class(record: Record) -> str:
    """Return the class of a failure: its outcome, with the HTTP status as "status(503)"."""
    is_status = record.outcome is Outcome.STATUS
    return status_class(record.status) if is_status else str(record.outcome)


def status_class(status: int) -> str:
    """Return the class of failures with an HTTP status."""
    return f"status({status})"


def lost_text(cut_off: int, never_sent: int) -> str:
    """Describe the requests that the early end of a run cost.

    Args:
        cut_off: How many were cut off in flight.
        never_sent: How many were never sent.
    """
    counts = ((cut_off, "cut off"), (never_sent, "never sent"))
    return ", ".join(f"{count} {what}" for count, what in counts if count)


class Reachability(Struct, frozen=True):
    """What the connections to one target show. Times are seconds on the clock of the run.

    Attributes:
        answered_s: The last sign of life: bytes of a response, an answer to a TLS handshake, or a
            request that was sent and is held; 0 where there was none since the clock started. A
            name that does not resolve, or a connection that is not open in time, is neither that
            nor a refusal.
        refused_s: The first connection that was refused after that, or closed before a byte of a
            response; None where none was.
        last_s: The last connection that was refused.
        why: The system's message for it.
    """

    answered_s: float = 0.0
    refused_s: float | None = None
    last_s: float = 0.0
    why: str = ""

    def __add__(self, other: Self) -> Self:
        """Combine what two workers see of the same target: it answers where it answers either of
        them.
        """
        answered_s = max(self.answered_s, other.answered_s)
        refused = [
            part
            for part in (self, other)
            if part.refused_s is not None and part.last_s > answered_s
        ]
        if not refused:
            return type(self)(answered_s)
        first_s = min(max(part.refused_s or 0.0, answered_s) for part in refused)
        last = max(refused, key=lambda part: part.last_s)
        return type(self)(answered_s, first_s, last.last_s, last.why)

    @property
    def refusing(self) -> bool:
        """Whether every attempt to connect was refused for a second at least, up to the last."""
        return self._refused_for_s >= 1.0

    @property
    def gone(self) -> bool:
        """Whether every attempt to connect was refused for PATIENCE_S, from the first to the
        last.
        """
        return self._refused_for_s >= PATIENCE_S

    @property
    def _refused_for_s(self) -> float:
        return 0.0 if self.refused_s is None else self.last_s - self.refused_s


class ReachabilityTracker:
    """Tracks what becomes of connections to one target; times are ns, CLOCK_MONOTONIC."""

    def __init__(self) -> None:
        self._answered_ns = self._refused_ns = self._last_ns = 0
        self._why = ""

    def answered(self, at_ns: int) -> None:
        """Track a sign of life of the server."""
        self._answered_ns = max(self._answered_ns, at_ns)

    def refused(self, at_ns: int, why: str) -> None:
        """Track a connection that the server refused."""
        if self._answered_ns >= self._last_ns:
            self._refused_ns = at_ns
        self._last_ns = at_ns
        self._why = why

    def reachability(self, start_ns: int) -> Reachability:
        """Return what the connections show so far.

        Args:
            start_ns: When the clock of the run started.
        """
        answered_s = max(0.0, (self._answered_ns - start_ns) / 1e9)
        if self._last_ns <= max(self._answered_ns, start_ns):
            return Reachability(answered_s)
        first_s, last_s = ((at_ns - start_ns) / 1e9 for at_ns in (self._refused_ns, self._last_ns))
        return Reachability(answered_s, max(answered_s, first_s), last_s, self._why)
