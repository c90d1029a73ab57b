"""`Departures`: which requests lose their user before the answer is complete, and when."""

from dataclasses import dataclass
from typing import Self

from loadgen.config.settings import RunSettings, seed_of
from loadgen.config.user_behavior import Disconnect
from loadgen.core.record import Record
from loadgen.util.clock import NS_PER_S
from loadgen.workload.uniforms import uniforms


@dataclass(frozen=True, slots=True)
class Departures:
    """Users who leave: each request draws for itself, so that any number of workers draws the same.

    Attributes:
        disconnect: Their share, and when they leave.
        seed: The seed of the draws, that of the arrivals.
    """

    disconnect: Disconnect
    seed: int

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self | None:
        """Create the departures of `--disconnect`; None without it.

        Raises:
            BadInput: Its value is invalid.
        """
        if settings.disconnect is None:
            return None
        return cls(Disconnect.parse(settings.disconnect), seed_of(settings, "arrivals"))

    def drawn(self, index: int) -> bool:
        """Return whether the user of request `index` leaves; it depends on the index, the seed and the share alone."""
        return uniforms(1, self.seed, "disconnect", index)[0] < self.disconnect.share

    def mark(self, record: Record) -> None:
        """Write into the record of a request that is about to be sent when its user leaves, if it was drawn."""
        if not self.drawn(record.index):
            return
        if self.disconnect.tokens is not None:
            record.disconnect_tokens = self.disconnect.tokens
        elif self.disconnect.after_s is not None:
            record.disconnect_ns = int(self.disconnect.after_s * NS_PER_S)


def left_after(record: Record) -> str:
    """Say when the user of a request left that was to leave at a time."""
    return f"the user left {record.disconnect_ns / NS_PER_S:g} s after it was sent"
