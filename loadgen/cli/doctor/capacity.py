"""Capacity: how much load this machine has made, measured, against the test servers on its own cores.

A rate counts when the run at it is VALID: its loop at most 70 % busy, requests sent on time, tokens stamped as they
came. Requests are driven against the roofline, which answers at once; its answers come in one piece, as no model's do,
so each is one token. Tokens, and streams at once, are driven against the metronome, which writes each when it is due.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from loadgen.checks import Verdict
from loadgen.cli.doctor.connections import STREAMS
from loadgen.config.settings import RunSettings
from loadgen.runner import run as runner
from loadgen.testing.process import Process, started
from loadgen.util import machine, source_address
from loadgen.util.affinity import apart
from loadgen.util.machine import Busy
from loadgen.workload.prompt import Prompt

RUNS = 3  # at most, until a rate is found
FIRST_RPS, SECONDS = 4_000.0, 0.7
# Of streams whose tokens are counted: each lasts half a second, and they begin for longer than the second that counts.
TOKENS, GAP_MS, FIRST_STREAM_RPS, STREAM_SECONDS = 25, 20.0, 1_000.0, 1.2
# Of STREAMS at once.
MANY_RPS, FEWEST_TOKENS, LAST_S = 5_000.0, 4, 0.5
AIM, MOST_FASTER, NEAR = 0.62, 4.0, 1.15  # the share of the loop that the next rate is to fill, and how far it may go


@dataclass(frozen=True, slots=True)
class Drive:
    """One run.

    Attributes:
        rate: Requests per second that were asked for.
        requests_per_s: Requests that ended well, by the time from the first send until the last has ended.
        events_per_s: Token events in its best second.
        streams: The most at once.
        busy_share: Of the measuring loop.
        lag_p99_ms: How late requests were sent.
        verdict: Of the run.
        failed: The checks that failed.
        disturbance: What else kept the machine busy.
    """

    rate: float
    requests_per_s: float
    events_per_s: float
    streams: int
    busy_share: float
    lag_p99_ms: float
    verdict: str
    failed: tuple[str, ...]
    disturbance: str

    @property
    def valid(self) -> bool:
        """Whether it may be believed."""
        return self.verdict == Verdict.VALID


@dataclass(frozen=True, slots=True)
class Climb:
    """The runs of rising rates.

    Attributes:
        best: The highest that was VALID; None where none was.
        missed: The lowest above it that was not; None where all that were tried are.
    """

    best: Drive | None
    missed: Drive | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """What was measured.

    Attributes:
        cores: On which server and client ran.
        requests: Of one token each, answered at once.
        events: Of tokens that came 20 ms apart in each stream.
        streams: STREAMS of them at once; None where they were not tried.
        connections: How many this process may have to one server; where they are fewer, STREAMS were not tried.
    """

    cores: int
    requests: Climb
    events: Climb
    streams: Drive | None
    connections: int

    @property
    def runs(self) -> list[Drive]:
        """Those that the figures are from."""
        climbs = (self.requests, self.events)
        return [run for run in (*(run for each in climbs for run in (each.best, each.missed)), self.streams) if run]

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)


def measure(on_phase: Callable[[str], None]) -> Capacity:
    """Measure it, in some 15 s; `on_phase` is told what is under way.

    Raises:
        LoadgenError: A server does not start, or a run cannot be carried out.
    """
    machine.raise_open_files_limit()
    on_phase("requests")
    with started("loadgen.testing.roofline") as server, apart([server.pid]):
        requests = climb(lambda rate: drive(server, rate, round(rate * SECONDS), 1), FIRST_RPS)
    with started("loadgen.testing.metronome") as server, apart([server.pid]):
        on_phase("token events")
        events = climb(lambda rate: drive(server, rate, round(rate * STREAM_SECONDS), TOKENS, GAP_MS), FIRST_STREAM_RPS)
        streams, connections = None, _connections(server)
        if connections >= STREAMS:
            on_phase(f"{STREAMS:,} streams at once")
            streams = many(server)
    return Capacity(machine.usable_cores(), requests, events, streams, connections)


def climb(run_at: Callable[[float], Drive], first_rps: float) -> Climb:
    """Look for the highest rate at which a run is VALID, in RUNS runs."""
    best: Drive | None = None
    missed: Drive | None = None
    rate = first_rps
    for _ in range(RUNS):
        found = run_at(rate)
        if found.valid:
            best = found
            faster = min(MOST_FASTER, AIM / max(found.busy_share, 0.01))
        else:
            missed, faster = found, 0.5
        if best is not None and missed is not None:
            rate = (best.rate * missed.rate) ** 0.5
        elif best is not None and faster < NEAR:
            break
        else:
            rate = found.rate * faster
    return Climb(best, missed)


def drive(
    server: Process, rate: float, count: int, tokens: int, gap_ms: float | None = None, warm_connections: str = "auto"
) -> Drive:
    """One run of Poisson arrivals, each request for so many tokens, so far apart where a gap is given."""
    plan = {"metronome": {"first_ms": gap_ms, "gap_ms": gap_ms}} if gap_ms is not None else None
    asked = RunSettings(
        base_url=server.url,
        backend="openai-chat",
        request_rate=rate,
        num_prompts=count,
        warm_connections=warm_connections,
        extra_body=plan,
        server_metrics=("off",),
    )
    before, before_s = Busy.now(), machine.process_cpu_s(server.pid)
    result = runner.run_sync(asked, dataset=_Short(tokens))
    disturbance = machine.disturbance(before, Busy.now(), machine.process_cpu_s(server.pid) - before_s)
    numbers = result.numbers
    return Drive(
        rate=rate,
        requests_per_s=numbers.request_throughput or 0.0,
        events_per_s=numbers.max_output_tokens_per_s,
        streams=numbers.max_concurrent_requests,
        busy_share=result.client.busy_share or 0.0,
        lag_p99_ms=result.latency_ms.lag.p99_ms or 0.0,
        verdict=result.verdict,
        failed=tuple(check.name for check in result.failed_checks),
        disturbance=disturbance,
    )


def many(server: Process) -> Drive:
    """STREAMS at once: the first has not ended when the last begins."""
    lasts_ms = (STREAMS / MANY_RPS + LAST_S) * 1e3
    return drive(server, MANY_RPS, STREAMS, FEWEST_TOKENS, lasts_ms / FEWEST_TOKENS, str(STREAMS))


def _connections(server: Process) -> int:
    """How many connections this process may have to a server."""
    return machine.most_connections(source_address.count((), urlsplit(server.url).hostname or ""))


@dataclass(frozen=True)
class _Short:
    """One-word prompts that ask for so many tokens."""

    tokens: int

    def prompts(self, count: int) -> Iterator[Prompt]:
        """As many as are wanted."""
        return (Prompt("tick", 1, self.tokens, f"short/{number}") for number in range(count))

    def provenance(self) -> dict[str, Any]:
        """What they are."""
        return {"name": "short", "tokens": self.tokens}
