"""Stop: the condition of `--stop-when` that ended a run, and when."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import Struct

from loadgen.metrics.stop_event import StopEvent


class Stop(Struct, frozen=True, kw_only=True):
    """The condition of `--stop-when` that ended the run."""

    condition: Annotated[str, "The condition."]
    at_s: Annotated[float, "When it held, s on the clock. Nothing was sent from then on."]
    value: Annotated[
        float | None,
        "What was found: ms of a latency, a share of an error rate, a number of errors; null: it falls among "
        "requests that failed.",
    ]

    @classmethod
    def of(cls, event: StopEvent | None) -> Self | None:
        """Type an event."""
        return None if event is None else cls(**event.to_dict())
