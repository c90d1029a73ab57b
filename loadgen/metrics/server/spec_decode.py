"""Speculative decoding during a run, as the counters of the servers show it."""

from dataclasses import dataclass
from typing import Self

from loadgen.metrics.server.names import ACCEPTED_AT
from loadgen.metrics.server.telemetry import Telemetry


@dataclass(frozen=True)
class SpecDecode:
    """What servers drafted and accepted, all together. Unknown values are None.

    Attributes:
        rate: Share of the drafted tokens that were accepted, 0 to 1.
        length: Mean output tokens of a step that verifies a draft: the accepted ones and one more.
        drafts: Number of drafts.
        drafted: Tokens in them.
        accepted: Tokens of them that were accepted.
        per_position: Share of the drafts whose token at each position was accepted.
    """

    rate: float | None
    length: float | None
    drafts: float | None
    drafted: float | None
    accepted: float | None
    per_position: tuple[float, ...]

    @classmethod
    def of(cls, telemetry: Telemetry) -> Self | None:
        """Compute it; None where nothing was drafted, or no server reports it.

        SGLang has no counters but gauges of the last batch, of which the means over the scrapes are taken.
        """
        drafts, drafted, accepted = map(telemetry.increase, ("drafts", "drafted_tokens", "accepted_tokens"))
        length = 1 + accepted / drafts if drafts and accepted is not None else None
        if length is None and (batches := telemetry.levels("batch_accept_length")):
            length = sum(batches) / len(batches)
        if telemetry.spec_acceptance is None and length is None:
            return None
        counts = [telemetry.increase(f"{ACCEPTED_AT}{position}") or 0.0 for position in range(_positions(telemetry))]
        shares = tuple(count / drafts for count in counts) if drafts else ()
        return cls(telemetry.spec_acceptance, length, drafts, drafted, accepted, shares)


def _positions(telemetry: Telemetry) -> int:
    """Return one more than the last position that a server counts."""
    names = (name for source in telemetry.sources for name in source.series if name.startswith(ACCEPTED_AT))
    return max((int(name.removeprefix(ACCEPTED_AT)) + 1 for name in names), default=0)
