"""Sample: what one run of one client cost, and what else the machine did meanwhile."""

import resource
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.performance.load import Load
from loadgen.engines import Server
from loadgen.util import machine


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What happened around a client, from its start to its end.

    Attributes:
        tree_cpu_s: Processor time of the client's processes together, start-up and report included.
        others_cores: Cores that processes outside the bench kept busy.
        server_cores: Cores that the server kept busy.
        overrun_ms: Time by which the server fell behind its own plan; above a few ms it was the
            bottleneck.
    """

    tree_cpu_s: float
    others_cores: float
    server_cores: float
    overrun_ms: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one client.

    Attributes:
        client: Its name.
        load: What it sent.
        round: In which round, from 0.
        tokens: Tokens it received.
        cpu_s: Processor time between the first send and the last end.
        busy_share: That time as a share of one core.
        loop_busy: The share of the time for which its busiest loop ran; None: it does not say.
        achieved_rps: Requests per second from the first send to the last; None: too few to tell.
        late_p99_ms, late_max_ms: How far sends were behind the schedule.
        ttft_p50_ms, ttft_p99_ms: From sent to the first token.
        peak_mb: Most memory its measuring process had resident.
        verdict: What it says about its own run; empty: it says nothing.
        around: What else happened.
    """

    client: str
    load: Load
    round: int
    tokens: int
    cpu_s: float
    busy_share: float
    loop_busy: float | None
    achieved_rps: float | None
    late_p99_ms: float | None
    late_max_ms: float
    ttft_p50_ms: float
    ttft_p99_ms: float
    peak_mb: float
    verdict: str
    around: Surroundings

    @classmethod
    def of(
        cls, client: str, load: Load, number: int, told: Mapping[str, Any], around: Surroundings
    ) -> "Sample":
        """Make it of what a client told.

        Raises:
            RuntimeError: The client did not receive what it asked for, so that its cost says
                nothing.
        """
        if told["tokens"] != load.count * load.tokens:
            raise RuntimeError(
                f"{client} received {told['tokens']} of {load.count * load.tokens} tokens ({load})"
            )
        return cls(
            client,
            load,
            number,
            told["tokens"],
            told["cpu_s"],
            told["cpu_s"] / told["wall_s"],
            told.get("loop_busy"),
            told["achieved_rps"],
            told["late_p99_ms"],
            told["late_max_ms"],
            told["ttft_p50_ms"],
            told["ttft_p99_ms"],
            told["peak_mb"],
            told.get("verdict", ""),
            around,
        )

    @property
    def us_per_token(self) -> float:
        """All that the run cost, by tokens received."""
        return self.cpu_s / self.tokens * 1e6

    @property
    def us_per_request(self) -> float:
        """All that the run cost, by requests."""
        return self.cpu_s / self.load.count * 1e6


class Watch:
    """Watches the machine while one client runs; begin before it starts, `end()` after it has
    been reaped.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._overrun_s = _overrun_s(server)
        self._server_s = machine.process_cpu_s(server.pid)
        self._children_s = _children_s()
        self._busy = machine.CpuTimes.now()

    def end(self) -> Surroundings:
        """What has happened since the beginning."""
        busy, before = machine.CpuTimes.now(), self._busy
        wall_s = busy.at_s - before.at_s
        tree_s = _children_s() - self._children_s
        server_s = machine.process_cpu_s(self._server.pid) - self._server_s
        ours_s = tree_s + server_s + busy.own_s - before.own_s
        return Surroundings(
            tree_s,
            max(0.0, (busy.used_s - before.used_s - ours_s) / wall_s),
            server_s / wall_s,
            (_overrun_s(self._server) - self._overrun_s) * 1e3,
        )


def _children_s() -> float:
    """Processor time of all children that have been waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _overrun_s(server: Server) -> float:
    with urllib.request.urlopen(f"{server.base_url}/metrics") as reply:
        for line in reply.read().decode().splitlines():
            if line.startswith("sim:step_overrun_seconds_total{"):
                return float(line.rpartition(" ")[2])
    raise RuntimeError("the server does not tell sim:step_overrun_seconds_total")
