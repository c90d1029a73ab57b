"""How many requests of a run failed, by fault of the server and of the client."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from loadgen.core.outcome import OUR_FAULTS, Outcome


def lost_text(cut_off: int, never_sent: int) -> str:
    """Describe the requests that the early end of a run cost, those cut off in flight and those never sent."""
    named = ((cut_off, "cut off"), (never_sent, "never sent"))
    return ", ".join(f"{count} {what}" for count, what in named if count)


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed requests, and those among which they count.

    A request that was cancelled because the run ended early counts nowhere: its end is unknown. Nor does one whose user
    left, as --disconnect asks.
    A turn that was never due, since one before it had failed, is as much of a failure as that one, of the server or of
    the client: after a fault of the client it has that outcome, else it is cancelled.

    Attributes:
        of: Requests that ended, but for those that the end of the run cancelled and those whose users left.
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
            never_due: Turns among the cancelled that were never due, since the server had failed one before them.
        """
        neither = outcomes.get(Outcome.CANCELLED, 0) - never_due + outcomes.get(Outcome.DISCONNECTED, 0)
        of = sum(outcomes.values()) - neither
        client = sum(outcomes.get(fault, 0) for fault in OUR_FAULTS)
        return cls(of, of - client - outcomes.get(Outcome.OK, 0), client)

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
