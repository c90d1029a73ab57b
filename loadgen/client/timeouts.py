"""Timeouts: how long a request may take to connect, to its first token, between tokens and in all."""

from dataclasses import dataclass
from typing import Self

from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from loadgen.metrics.failures import SILENCE_NS

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

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Read the timeouts of the settings, which are in seconds."""
        seconds = (settings.connect_timeout, settings.first_token_timeout, settings.stall_timeout, settings.timeout)
        return cls(*(int(s * 1e9) for s in seconds))

    @property
    def smallest(self) -> int:
        """The smallest limit, SILENCE_NS included: no request that is sent now can pass a limit earlier."""
        return min(limit for limit in (self.first_token, self.stall, self.whole, SILENCE_NS) if limit)

    def left(self, record: Record, at_ns: int) -> tuple[int, Outcome]:
        """Return the ns from `at_ns` until a request passes a limit, 0 or less where it has, and its outcome then."""
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
