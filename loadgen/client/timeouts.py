"""Timeouts: how long a request may take to connect, to its first token, between tokens and in all."""

from dataclasses import dataclass

from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.reachability import SILENCE_NS

NEVER_NS = 1 << 62


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in ns; 0 is no limit.

    `first_token` and `whole` count from sent. `stall` counts from the last token, and from the first byte where there
    is none yet and no limit on the first token.
    """

    connect: int
    first_token: int = 0
    stall: int = 0
    whole: int = 0

    @property
    def smallest(self) -> int:
        """The smallest limit, SILENCE_NS included: nothing sent now can pass a limit earlier."""
        return min(limit for limit in (self.first_token, self.stall, self.whole, SILENCE_NS) if limit)

    def left(self, record: Record, at_ns: int) -> tuple[int, Outcome]:
        """How long it is at `at_ns` until a request passes a limit, 0 or less where it has, and which."""
        left, outcome = NEVER_NS, Outcome.TIMEOUT
        if self.whole:
            left = record.sent + self.whole - at_ns
        since, limit, other = record.last_token, self.stall, Outcome.STALLED
        if not since:
            if self.first_token:
                since, limit, other = record.sent, self.first_token, Outcome.TIMEOUT_FIRST_TOKEN
            elif not (since := record.first_byte):
                return left, outcome
        if limit and since + limit - at_ns < left:
            return since + limit - at_ns, other
        return left, outcome
