"""What a study knows of a workload's run beside its numbers: verdict, limits, goodput, and where it was published."""

from __future__ import annotations

from msgspec import Struct, field

from loadgen.checks.distortion import MAX_SHARE
from loadgen.report.result.outcomes import LimitResult
from loadgen.util.machine import MAX_STOLEN_SHARE
from loadgen.util.number_format import percent

MAX_OTHERS_CORES, MAX_OTHERS_SHARE = 0.25, 0.01  # of a large machine's cores, other processes may use this share


class Goodput(Struct, frozen=True, kw_only=True):
    """The highest request rate that meets the goodput limits.

    Attributes:
        rate: The highest tried rate that met them, requests/s; 0: none.
        fails: The lowest tried rate that did not, requests/s; None: none.
        end: How the search ended: edge, floor or none.
        tried: Pairs of a rate and whether it met the limits.
        attainment: The share of requests that must meet them.
        limits: The limits as written.
        resolution: How close `rate` and `fails` had to be, as a ratio.
        runs: Runs that the search took.
        notes: Remarks of the search.
    """

    rate: float
    fails: float | None = None
    end: str = "edge"
    tried: list[tuple[float, bool | None]] = field(default_factory=list)
    attainment: float = 0.0
    limits: str = ""
    resolution: float = 0.0
    runs: int = 0
    notes: list[str] = field(default_factory=list)


class Origin(Struct, frozen=True, kw_only=True):
    """Where a published result was imported from.

    Attributes:
        file: The path of the file.
        sha256: Of the file.
        result: Its number in the file.
        place: File and line, as printed.
        command: The server's command line; None: the page has none.
        hardware: The hardware as the file names it; empty: it does not.
        notes: What was assumed to place it in the study.
    """

    file: str = ""
    sha256: str = ""
    result: int = 0
    place: str = ""
    command: str | None = None
    hardware: str = ""
    notes: list[str] = field(default_factory=list)


class Disturbance(Struct, frozen=True, kw_only=True):
    """What disturbed a run. Its result plays no part, so that a disturbed run can be repeated without a bias.

    Attributes:
        others_cores: Cores that other processes used.
        stolen_share: Share of all cores' time that the hypervisor took.
        client_error: Share of the mean E2EL that the client may have added; None: unknown.
        cores: Cores of the machine.
        quiet: Whether the machine was quiet when the start began.
    """

    others_cores: float = 0.0
    stolen_share: float = 0.0
    client_error: float | None = None
    cores: int = 1
    quiet: bool = True

    @property
    def excess(self) -> float:
        """The most disturbing part as a multiple of its limit."""
        parts = self.others_cores / self.max_others_cores, self.stolen_share / MAX_STOLEN_SHARE
        return max(*parts, (self.client_error or 0.0) / MAX_SHARE)

    @property
    def max_others_cores(self) -> float:
        """Cores that other processes may use."""
        return max(MAX_OTHERS_CORES, MAX_OTHERS_SHARE * self.cores)

    @property
    def disturbed(self) -> bool:
        """Whether a part is above its limit."""
        return self.excess > 1

    @property
    def lost_cores(self) -> float:
        """Cores that the run could not use, on average."""
        return self.others_cores + self.stolen_share * self.cores

    def __str__(self) -> str:
        parts = []
        if self.others_cores > self.max_others_cores:
            parts.append(f"other processes used {self.others_cores:.1f} of {self.cores} cores")
        if self.stolen_share > MAX_STOLEN_SHARE:
            parts.append(f"the hypervisor took {percent(self.stolen_share, 1)} of the time")
        if (self.client_error or 0.0) > MAX_SHARE:
            parts.append(f"the client may have added {percent(self.client_error, 1)} to E2EL")
        return ", ".join(parts)


class WorkloadFindings(Struct, frozen=True, kw_only=True):
    """What was judged of a run; fields that a result lacks have their defaults.

    Attributes:
        verdict: VALID, SUSPECT or INVALID; None: a published result that nothing judges.
        reasons: Why the run is not VALID.
        slo: What it shows of each limit.
        simulated: Whether the simulator was measured.
        goodput: The goodput of a study whose objective it is.
        disturbance: What disturbed the run; None: unknown.
        servers: How many servers were measured together.
        published: The numbers as published, by vLLM's names; empty if the study measured the run itself.
        provenance: Where a published result is from.
    """

    verdict: str | None = None
    reasons: list[str] = field(default_factory=list)
    slo: list[LimitResult] = field(default_factory=list)
    simulated: bool | None = None
    goodput: Goodput | None = None
    disturbance: Disturbance | None = None
    servers: int = 1
    published: dict[str, float] = field(default_factory=dict)
    provenance: Origin | None = None
