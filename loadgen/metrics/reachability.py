"""Whether a server still accepts connections, as the connections of a run show."""

from dataclasses import dataclass
from typing import Self

PATIENCE_S = 5.0  # a server that only refused for so long counts as gone
SILENCE_NS = 60_000_000_000  # a stream without a token for so long is reported to the user


@dataclass(frozen=True, slots=True)
class Reachability:
    """What the connections to one target show. Times are seconds on the clock of the run.

    Attributes:
        answered_s: The last sign of life: bytes of a response, an answer to a TLS handshake, or a request that was sent
            and is held; 0 where there was none since the clock started. A name that does not resolve, or a connection
            that is not open in time, is neither that nor a refusal.
        refused_s: The first connection that was refused after that, or closed before a byte of a response; None where
            none was.
        last_s: The last connection that was refused.
        why: The system's message for it.
    """

    answered_s: float = 0.0
    refused_s: float | None = None
    last_s: float = 0.0
    why: str = ""

    def __add__(self, other: Self) -> Self:
        """Combine what two workers see of the same target: it answers where it answers either of them."""
        answered_s = max(self.answered_s, other.answered_s)
        refused = [one for one in (self, other) if one.refused_s is not None and one.last_s > answered_s]
        if not refused:
            return type(self)(answered_s)
        first_s = min(max(one.refused_s or 0.0, answered_s) for one in refused)
        last = max(refused, key=lambda one: one.last_s)
        return type(self)(answered_s, first_s, last.last_s, last.why)

    @property
    def refusing(self) -> bool:
        """Whether every attempt to connect was refused for a second at least, up to the last."""
        return self._refused_for_s >= 1.0

    @property
    def gone(self) -> bool:
        """Whether every attempt to connect was refused for PATIENCE_S, from the first to the last."""
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
        self._last_ns, self._why = at_ns, why

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
