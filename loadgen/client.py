"""Client: what measuring took of the measuring process, and what that process met."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Client:
    """Facts about the measuring process from the start of the clock to its end; None where nobody knows.

    Attributes:
        wall_s: Time that went by.
        cpu_s: CPU time of the process, all threads.
        busy_share: Share of the wall time for which the thread of the loop ran.
        peak_memory_bytes: The most resident memory since the process started.
        engine_cpu_s: CPU time of the engines that were started for the run.
        engine_runs: Whether each of them is still the process that it was.
        stolen_share: Share of all cores' time that the host gave to others.
        throttled_s: Time for which a CPU limit held the process back.
        disturbance: What else kept the machine busy, in words; empty where nothing did.
        connections_reused: Whether the server lets a connection bear more than one request.
        records_error: Why the records are not complete; None too where they are.
        capture: What was captured, as JSON; None too where nothing was to be.
    """

    wall_s: float | None = None
    cpu_s: float | None = None
    busy_share: float | None = None
    peak_memory_bytes: int | None = None
    engine_cpu_s: float | None = None
    engine_runs: bool | None = None
    stolen_share: float | None = None
    throttled_s: float | None = None
    disturbance: str | None = None
    connections_reused: bool | None = None
    records_error: str | None = None
    capture: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The one of which `to_dict` made `data`.

        Raises:
            KeyError, TypeError: It made something else.
        """
        return cls(**{field.name: data[field.name] for field in dataclasses.fields(cls)})
