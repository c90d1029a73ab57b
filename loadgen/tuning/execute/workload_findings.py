"""What a study knows of a workload's run beside its numbers: verdict, limits, goodput, and where it was published."""

from msgspec import Struct, field

from loadgen.report.result.limit import LimitResult


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
    """

    file: str = ""
    sha256: str = ""
    result: int = 0
    place: str = ""
    command: str | None = None
    hardware: str = ""


class WorkloadFindings(Struct, frozen=True, kw_only=True):
    """What was judged of a run; fields that a result lacks have their defaults.

    Attributes:
        verdict: VALID, SUSPECT or INVALID; None: a published result that nothing judges.
        reasons: Why the run is not VALID.
        slo: What it shows of each limit.
        simulated: Whether the simulator was measured.
        goodput: The goodput of a study whose objective it is.
        servers: How many servers were measured together.
        published: The numbers as published, by vLLM's names; empty if the study measured the run itself.
        provenance: Where a published result is from.
    """

    verdict: str | None = None
    reasons: list[str] = field(default_factory=list)
    slo: list[LimitResult] = field(default_factory=list)
    simulated: bool | None = None
    goodput: Goodput | None = None
    servers: int = 1
    published: dict[str, float] = field(default_factory=dict)
    provenance: Origin | None = None
