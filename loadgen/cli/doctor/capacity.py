"""Measures how much load one process can generate on this machine, against test servers on the same
cores.

A rate counts if the run at that rate is VALID: requests are sent on time, and the client error of
each figure is small. The request rate is measured with the roofline server, which answers each
request at once with one token. Token rate and concurrent streams are measured with the metronome
server, which writes each token when it is due.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from loadgen.checks import Verdict
from loadgen.cli.doctor.network import STREAMS
from loadgen.config.settings import RunSettings
from loadgen.library.run import run_sync
from loadgen.testing.process import Process, started
from loadgen.util import machine, source_address
from loadgen.util.machine import CpuTimes
from loadgen.util.scheduling import separate_cores
from loadgen.workload.prompt import Prompt

MAX_RUNS = 3  # to find a rate
FIRST_RPS, SECONDS = 4_000.0, 0.7
# Runs that count token events: each stream lasts half a second; new ones start for longer than the
# best second.
TOKENS, GAP_MS, FIRST_STREAM_RPS, STREAM_SECONDS = 25, 20.0, 1_000.0, 1.2
# The run with STREAMS concurrent streams: arrivals, tokens per stream, and the time that all of
# them overlap.
MANY_RPS, MANY_TOKENS, OVERLAP_S = 5_000.0, 4, 0.5
# The next rate aims at this busy share, grows at most by this factor, and is not tried below this
# growth.
AIM, MAX_GROWTH, MIN_GROWTH = 0.62, 4.0, 1.15


@dataclass(frozen=True, slots=True)
class Drive:
    """One run.

    Attributes:
        rate: The requested rate, requests per second.
        requests_per_s: Successful requests per second, from the first send to the last end.
        events_per_s: Token events in the best second.
        streams: The peak number of concurrent streams.
        busy_share: The busy share of the measuring loop, 0 to 1.
        client_error_ms: The most by which the client may have moved a printed latency; None:
            unknown.
        verdict: The verdict of the run.
        failed: The names of the checks that failed.
        disturbance: What else kept the machine busy; empty if nothing did.
    """

    rate: float
    requests_per_s: float
    events_per_s: float
    streams: int
    busy_share: float
    client_error_ms: float | None
    verdict: str
    failed: tuple[str, ...]
    disturbance: str

    @property
    def valid(self) -> bool:
        """Whether the verdict is VALID."""
        return self.verdict == Verdict.VALID

    @property
    def doubts(self) -> str:
        """Why the run is not VALID: the failed checks, and what else kept the machine busy."""
        return "; ".join(filter(None, (", ".join(self.failed), self.disturbance)))


@dataclass(frozen=True, slots=True)
class Climb:
    """Runs at different rates.

    Attributes:
        best: The VALID run with the highest rate, or None.
        missed: The run with the lowest rate above it that was not VALID, or None.
    """

    best: Drive | None
    missed: Drive | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """The measured capacity.

    Attributes:
        cores: The number of cores that server and client shared.
        requests: Runs with requests of one token that are answered at once.
        events: Runs with streams of tokens 20 ms apart.
        streams: The run with STREAMS concurrent streams; None if `connections` is too low for it.
        connections: How many connections this process can open to one server.
    """

    cores: int
    requests: Climb
    events: Climb
    streams: Drive | None
    connections: int

    @property
    def runs(self) -> list[Drive]:
        """The runs on which the figures rest."""
        climbs = (self.requests, self.events)
        return [
            run
            for run in (*(run for each in climbs for run in (each.best, each.missed)), self.streams)
            if run
        ]


def measure(on_phase: Callable[[str], None]) -> Capacity:
    """Measure the capacity of this machine, in about 15 s.

    Args:
        on_phase: Is called with the name of each phase.

    Raises:
        LoadgenError: A test server does not start, or a run fails.
    """
    machine.raise_open_files_limit()
    on_phase("requests")
    with started("loadgen.testing.roofline") as server, separate_cores([server.pid]):
        requests = climb(lambda rate: drive(server, rate, round(rate * SECONDS), 1), FIRST_RPS)
    with started("loadgen.testing.metronome") as server, separate_cores([server.pid]):
        on_phase("token events")
        events = climb(
            lambda rate: drive(server, rate, round(rate * STREAM_SECONDS), TOKENS, GAP_MS),
            FIRST_STREAM_RPS,
        )
        host = urlsplit(server.url).hostname or ""
        streams, connections = (
            None,
            machine.max_connections(source_address.count_addresses((), host)),
        )
        if connections >= STREAMS:  # the first ends after the last has begun
            on_phase(f"{STREAMS:,} streams at once")
            gap_ms = (STREAMS / MANY_RPS + OVERLAP_S) * 1e3 / MANY_TOKENS
            streams = drive(server, MANY_RPS, STREAMS, MANY_TOKENS, gap_ms, str(STREAMS))
    return Capacity(machine.usable_cores(), requests, events, streams, connections)


def climb(run_at: Callable[[float], Drive], first_rps: float) -> Climb:
    """Search for the highest rate with a VALID run, in up to MAX_RUNS runs.

    Args:
        run_at: Executes a run at a rate.
        first_rps: The first rate, requests per second.
    """
    best: Drive | None = None
    missed: Drive | None = None
    rate = first_rps
    for _ in range(MAX_RUNS):
        run = run_at(rate)
        if run.valid:
            best = run
            growth = min(MAX_GROWTH, AIM / max(run.busy_share, 0.01))
        else:
            missed, growth = run, 0.5
        if best is not None and missed is not None:
            rate = (best.rate * missed.rate) ** 0.5
        elif best is not None and growth < MIN_GROWTH:
            break
        else:
            rate = run.rate * growth
    return Climb(best, missed)


def drive(
    server: Process,
    rate: float,
    count: int,
    tokens: int,
    gap_ms: float | None = None,
    warm_connections: str = "auto",
) -> Drive:
    """Execute one run with Poisson arrivals.

    Args:
        server: The test server.
        rate: Requests per second.
        count: The number of requests.
        tokens: Output tokens per request.
        gap_ms: The time between tokens, ms; None: as the server likes.
        warm_connections: As --warm-connections.

    Raises:
        LoadgenError: The run fails.
    """
    plan = {"metronome": {"first_ms": gap_ms, "gap_ms": gap_ms}} if gap_ms is not None else None
    requested = RunSettings(
        base_url=server.url,
        preflight=False,
        backend="openai-chat",
        request_rate=rate,
        num_prompts=count,
        warm_connections=warm_connections,
        extra_body=plan,
        server_metrics=("off",),
    )
    before, before_s = CpuTimes.now(), machine.process_cpu_s(server.pid)
    result = run_sync(requested, dataset=_Short(tokens))
    disturbance = machine.disturbance(
        before, CpuTimes.now(), machine.process_cpu_s(server.pid) - before_s
    )
    numbers = result.numbers
    return Drive(
        rate=rate,
        requests_per_s=numbers.request_throughput or 0.0,
        events_per_s=numbers.max_output_tokens_per_s or 0.0,
        streams=numbers.max_concurrent_requests,
        busy_share=result.client.busy_share or 0.0,
        client_error_ms=result.max_client_error_ms,
        verdict=result.verdict,
        failed=tuple(check.name for check in result.failed_checks),
        disturbance=disturbance,
    )


@dataclass(frozen=True)
class _Short:
    """A data set of one-word prompts.

    Attributes:
        tokens: Output tokens to request.
    """

    tokens: int

    def prompts(self, count: int) -> Iterator[Prompt]:
        return (Prompt("tick", 1, self.tokens, f"short/{number}") for number in range(count))

    def provenance(self) -> dict[str, Any]:
        return {"name": "short", "tokens": self.tokens}
