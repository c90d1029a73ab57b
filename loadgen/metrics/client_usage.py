"""Client: what measuring took of the processes that measured, and what they met."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Client:
    """Facts about a measuring process, or several, from the start of the clock to its end; None where nobody knows.

    Attributes:
        wall_s: Time that went by.
        cpu_s: CPU time of the process, all threads; of several processes the sum.
        busy_share: Share of the wall time for which the thread of the loop ran; of several loops that of the busiest.
        peak_memory_bytes: The most resident memory since the process started; of several processes the sum.
        engine_cpu_s: CPU time of the engines that were started for the run.
        engine_runs: Whether each of them is still the process that it was.
        stolen_share: Share of all cores' time that the host gave to others.
        throttled_s: Time for which a CPU limit held the process back.
        disturbance: What else kept the machine busy, in words; empty where nothing did.
        connections_reused: Whether the server lets a connection bear more than one request.
        spare_connections: Connections that were opened in the background while the clock ran.
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
    spare_connections: int | None = None
    records_error: str | None = None
    capture: dict[str, Any] | None = None

    @property
    def known(self) -> bool:
        """Whether a process lived to tell any of it."""
        return self.wall_s is not None

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

    @classmethod
    def together(cls, clients: Sequence[Self]) -> Self:
        """The facts about all of them: what they took is added up, of what each of them met the worst is kept."""

        def of_all(name: str, combine: Callable[[Iterable[Any]], Any]) -> Any:
            told = [value for client in clients if (value := getattr(client, name)) is not None]
            return combine(told) if told else None

        return cls(**{field.name: of_all(field.name, _COMBINED[field.name]) for field in dataclasses.fields(cls)})


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value), next(iter(values)))


# Machine, engines and control groups are the same for all, and each process has looked at them by itself.
_COMBINED: dict[str, Callable[[Iterable[Any]], Any]] = {
    "wall_s": max,
    "cpu_s": sum,
    "busy_share": max,
    "peak_memory_bytes": sum,
    "engine_cpu_s": max,
    "engine_runs": all,
    "stolen_share": max,
    "throttled_s": max,
    "disturbance": _first,
    "connections_reused": all,
    "spare_connections": sum,
    "records_error": _first,
    "capture": _first,
}
