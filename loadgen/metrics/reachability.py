"""Contact: whether a server still lets anybody connect, told by those who send to it."""

from dataclasses import dataclass
from typing import Self

PATIENCE_S = 5.0  # of refusals alone, after which a server counts as gone
SILENCE_NS = 60_000_000_000  # in a stream that has begun, after which a user is warned


@dataclass(frozen=True, slots=True)
class Contact:
    """What the connections to one target tell. Times are seconds on the clock of the run.

    Attributes:
        heard_s: The last sign of life: bytes of a response, an answer to a TLS handshake, or a request that was sent
            and is held; 0 where there was none since the clock started. A name that does not resolve, or a connection
            that is not open in time, is neither that nor a refusal.
        refused_s: The first connection that was refused after that, or closed before a byte of a response; None where
            none was.
        last_s: The last that was.
        why: What the system said to it.
    """

    heard_s: float = 0.0
    refused_s: float | None = None
    last_s: float = 0.0
    why: str = ""

    def __add__(self, other: Self) -> Self:
        """What both tell, who send to the same target: it answers where either of them hears it."""
        heard_s = max(self.heard_s, other.heard_s)
        refused = [one for one in (self, other) if one.refused_s is not None and one.last_s > heard_s]
        if not refused:
            return type(self)(heard_s)
        first_s = min(max(one.refused_s or 0.0, heard_s) for one in refused)
        last = max(refused, key=lambda one: one.last_s)
        return type(self)(heard_s, first_s, last.last_s, last.why)

    @property
    def refusing(self) -> bool:
        """Whether every attempt to connect was refused for a second at least, up to the last."""
        return self.refused_s is not None and self.last_s - self.refused_s >= 1.0

    @property
    def gone(self) -> bool:
        """Whether every attempt to connect was refused for PATIENCE_S, from the first to the last."""
        return self.refused_s is not None and self.last_s - self.refused_s >= PATIENCE_S


class Listener:
    """Notes what becomes of connections to one target; times are ns, CLOCK_MONOTONIC."""

    def __init__(self) -> None:
        self._heard_ns = self._refused_ns = self._last_ns = 0
        self._why = ""

    def heard(self, at_ns: int) -> None:
        """The server gave a sign of life."""
        self._heard_ns = max(self._heard_ns, at_ns)

    def refused(self, at_ns: int, why: str) -> None:
        """It refused a connection."""
        if self._heard_ns >= self._last_ns:
            self._refused_ns = at_ns
        self._last_ns, self._why = at_ns, why

    def contact(self, start_ns: int) -> Contact:
        """What that comes to.

        Args:
            start_ns: When the clock of the run started.
        """
        heard_s = max(0.0, (self._heard_ns - start_ns) / 1e9)
        if self._last_ns <= max(self._heard_ns, start_ns):
            return Contact(heard_s)
        first_s, last_s = ((at_ns - start_ns) / 1e9 for at_ns in (self._refused_ns, self._last_ns))
        return Contact(heard_s, max(heard_s, first_s), last_s, self._why)
