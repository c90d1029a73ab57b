"""Client: resource use of the measuring processes, and their disturbances."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import Struct, structs

from loadgen.metrics.run_data import RunData
from loadgen.report.result.fields import from_json_values


class Capture(Struct, frozen=True, kw_only=True):
    """What --capture kept."""

    responses: Annotated[int, "Responses kept."]
    left_out: Annotated[int, "Responses left out because the capture was full."]
    error: Annotated[str | None, "Why the capture is not complete; null: it is."]


class ProcessUsage(Struct, frozen=True, kw_only=True):
    """Resource use of one or several measuring processes, and their disturbances."""

    wall_s: Annotated[
        float | None,
        "Time from the start of the clock to its end, s; null if unknown, like all values here.",
    ]
    cpu_s: Annotated[float | None, "CPU time of the measuring processes, s."]
    busy_share: Annotated[
        float | None,
        "Share of the time for which the loop was busy (with several loops, the busiest), 0 to 1.",
    ]
    peak_memory_bytes: Annotated[
        int | None, "Peak resident memory, bytes; with several processes, the sum."
    ]
    engine_cpu_s: Annotated[
        float | None, "CPU time of the engines that were started for the run, s; null: none were."
    ]
    engine_runs: Annotated[
        bool | None, "Whether each of them still ran after the run; null: none were started."
    ]
    cores: Annotated[int | None, "Cores of the machine."] = None
    others_cores: Annotated[
        float | None,
        "Cores that processes used which neither measure nor serve, on average; null too where no "
        "server was seen on this machine.",
    ] = None
    stolen_share: Annotated[
        float | None,
        "Share of all cores' time that the host gave to other virtual machines, 0 to 1.",
    ]
    machine_cpu_s: Annotated[float | None, "CPU time of all processes of the machine, s."] = None
    idle_share: Annotated[
        float | None, "Share of all cores' time in which no process ran, 0 to 1."
    ] = None
    throttled_s: Annotated[float | None, "Time for which a CPU limit held the processes back, s."]
    disturbance: Annotated[str | None, "What else kept the machine busy; empty: nothing."]
    clock_width_ns: Annotated[
        int | None,
        "Longest time that a pair of readings took by which stamps of the kernel were converted, "
        "ns; a stamp may be off by half of it.",
    ] = None
    connections_reused: Annotated[
        bool | None, "Whether the server lets a connection carry more than one request."
    ]
    starved_requests: Annotated[
        int | None,
        "Requests that waited for a thread of the server that an idle connection of the client "
        "held.",
    ] = None
    records_error: Annotated[
        str | None,
        "Why the records are not complete; null: they are complete, or were not requested.",
    ]
    capture: Annotated[Capture | None, "What --capture kept; null without it."] = None


class ClientTotals(ProcessUsage, frozen=True, kw_only=True):
    """Resource use of all workers together, and their disturbances."""

    warm_connections: Annotated[
        int | None,
        "Connections that were open when the clock started; null: the process that opened them "
        "was killed.",
    ]
    late_connections: Annotated[int, "Requests that waited for a connection while the clock ran."]
    early: Annotated[int, "Requests sent more than 50 us before they were due."] = 0

    @classmethod
    def of(cls, run: RunData) -> Self:
        """Sum up the workers of a run."""
        usage, counters = run.client, run.snapshot.counters
        counts = {
            "warm_connections": counters["warm_connections"] if usage.known else None,
            **{name: counters[name] for name in ("late_connections", "early")},
        }
        return from_json_values(structs.asdict(usage) | counts, cls)


class Worker(Struct, frozen=True, kw_only=True):
    """One worker: the process, or the loop, that carried out one part of the run."""

    number: Annotated[int, "Number of its part of the run, from 0."]
    client: Annotated[ProcessUsage, "Resource use of the worker."]
    schedule_sha256: Annotated[
        str | None, "SHA-256 of its schedule; null: the worker was lost before it had one."
    ]
    host: Annotated[
        str | None, "The address of its machine; null: the one on which the command ran."
    ]
    lost: Annotated[str | None, "How it was lost; null: it finished."]
    cache_warmed: Annotated[
        int,
        "Requests that succeeded before the clock started, to warm the server's prefix cache up.",
    ] = 0
