"""Resources that the measuring processes used, and what disturbed them: the values, and the
sampler that makes them.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from msgspec import Struct, structs

from loadgen.engines.launch.processes import family, family_cpu_s
from loadgen.util import machine


class ClientUsage(Struct, frozen=True, kw_only=True):
    """Facts about one or several measuring processes, from the start of the clock to its end; None
    where unknown.

    Attributes:
        wall_s: Wall time.
        cpu_s: CPU time of the process, all threads; of several processes the sum.
        busy_share: Share of the wall time for which the thread of the loop ran; of several loops
            that of the busiest.
        peak_memory_bytes: Maximum resident memory since the process started; of several processes
            the sum.
        engine_cpu_s: CPU time of the engines that were started for the run.
        engine_runs: Whether each of them is still the process that it was.
        cores: Cores of the machine.
        others_cores: Cores that processes used which neither measure nor serve, on average; None
            too where no server was seen on this machine.
        stolen_share: Share of all cores' time that the host gave to others.
        machine_cpu_s: CPU time of all processes of the machine.
        idle_share: Share of all cores' time in which no process ran.
        throttled_s: Time for which a CPU limit held the process back.
        disturbance: What else kept the machine busy, in words; empty where nothing did.
        clock_width_ns: The longest time that a pair of readings took by which stamps of the kernel
            were converted; a stamp may be off by half of it.
        connections_reused: Whether the server lets a connection carry more than one request.
        starved_requests: Requests that waited for a thread of the server that an idle connection of
            the client held.
        records_error: Why the records are not complete; None too where they are.
        capture: What was captured, as JSON; None too where nothing was to be captured.
    """

    wall_s: float | None = None
    cpu_s: float | None = None
    busy_share: float | None = None
    peak_memory_bytes: int | None = None
    engine_cpu_s: float | None = None
    engine_runs: bool | None = None
    cores: int | None = None
    others_cores: float | None = None
    stolen_share: float | None = None
    machine_cpu_s: float | None = None
    idle_share: float | None = None
    throttled_s: float | None = None
    disturbance: str | None = None
    clock_width_ns: int | None = None
    connections_reused: bool | None = None
    starved_requests: int | None = None
    records_error: str | None = None
    capture: dict[str, Any] | None = None

    @property
    def known(self) -> bool:
        """Whether a process came to its end and reported."""
        return self.wall_s is not None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the facts from their JSON form.

        Raises:
            KeyError, TypeError: `data` holds other keys.
        """
        return cls(**{field.name: data.get(field.name) for field in structs.fields(cls)})

    @classmethod
    def together(cls, usages: Sequence[Self]) -> Self:
        """Combine several processes: what they used is summed, of what disturbed them the worst
        is kept.
        """

        def combined(name: str) -> Any:
            values = [value for usage in usages if (value := getattr(usage, name)) is not None]
            return _COMBINED[name](values) if values else None

        return cls(**{field.name: combined(field.name) for field in structs.fields(cls)})


class UsageSampler:
    """Measures the resources of the thread that makes it, whose loop measures, and of its machine,
    from then on.

    Args:
        engine_pids: The processes of engines that were started for the run.
        server_pids: The processes on this machine that serve, where none was started for it.
        other_pids: Further processes that belong to the run: other workers on this machine.
    """

    def __init__(
        self,
        engine_pids: tuple[int, ...],
        server_pids: tuple[int, ...] = (),
        other_pids: tuple[int, ...] = (),
    ) -> None:
        self._engine_pids = engine_pids
        self._server_pids = (*engine_pids, *server_pids)
        # To find the children of a server takes milliseconds: not while the clock runs.
        self._serving = self._servers()
        self._other_pids = {*other_pids} - self._serving - {os.getpid()}
        self.begin()

    def _servers(self) -> set[int]:
        return family(self._server_pids) if self._server_pids else set()

    def begin(self) -> None:
        """Measure from now on."""
        self._before = machine.CpuTimes.now()
        self._engine_s = _cpu_s(self._engine_pids)
        self._run_s = family_cpu_s(self._serving) + _cpu_s(self._other_pids)
        self._thread_s = time.thread_time()

    @property
    def busy_share(self) -> float:
        """The share of the time so far for which the thread ran."""
        wall_s = time.monotonic() - self._before.at_s
        return (time.thread_time() - self._thread_s) / wall_s if wall_s else 0.0

    def so_far(self) -> ClientUsage:
        """Return the usage so far, with all that the machine can tell."""
        busy_share = self.busy_share
        before = self._before
        after = machine.CpuTimes.now()
        engine_s = _cpu_s(self._engine_pids) - self._engine_s
        wall_s = after.at_s - before.at_s
        serving = self._servers()
        run_s = family_cpu_s(serving) + _cpu_s(self._other_pids) - self._run_s
        return ClientUsage(
            wall_s=wall_s,
            cpu_s=after.own_s - before.own_s,
            busy_share=busy_share,
            peak_memory_bytes=machine.peak_memory_bytes(),
            engine_cpu_s=engine_s if self._engine_pids else None,
            engine_runs=all(map(machine.is_running, self._engine_pids))
            if self._engine_pids
            else None,
            cores=os.cpu_count(),
            others_cores=machine.others_cores(before, after, run_s)
            if serving and after.used_s
            else None,
            stolen_share=machine.stolen_share(before, after),
            machine_cpu_s=after.used_s - before.used_s,
            idle_share=machine.idle_share(before, after),
            throttled_s=after.throttled_s - before.throttled_s,
            disturbance=machine.disturbance(before, after, run_s),
        )


def _cpu_s(pids: Iterable[int]) -> float:
    return sum(map(machine.process_cpu_s, pids))


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value), next(iter(values)))


# Machine, engines and control groups are the same for all processes, and each has read them by
# itself.
_COMBINED: dict[str, Callable[[Iterable[Any]], Any]] = {
    "wall_s": max,
    "cpu_s": sum,
    "busy_share": max,
    "peak_memory_bytes": sum,
    "engine_cpu_s": max,
    "engine_runs": all,
    "cores": max,
    "others_cores": max,
    "stolen_share": max,
    "machine_cpu_s": max,
    "idle_share": min,
    "throttled_s": max,
    "disturbance": _first,
    "clock_width_ns": max,
    "connections_reused": all,
    "starved_requests": sum,
    "records_error": _first,
    "capture": _first,
}
