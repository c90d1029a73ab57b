"""Stop: the condition of `--stop-when` that ended a run, and when."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct


class Stop(Struct, frozen=True, kw_only=True):
    """The condition of `--stop-when` that ended the run."""

    condition: Annotated[str, "The condition."]
    at_s: Annotated[float, "When it held, s on the clock. Nothing was sent from then on."]
    value: Annotated[
        float | None,
        "What was found: ms of a latency, a share of an error rate, a number of errors; null: it falls among "
        "requests that failed.",
    ]
