"""Findings: all that a bench found."""

from dataclasses import dataclass, field

from bench.performance.plan import Plan
from bench.performance.sample import Sample


@dataclass
class Findings:
    """What was found.

    Attributes:
        plan: How much was measured.
        clients: Names of the clients that ran, loadgen first.
        samples: What each run cost.
        memory: The run whose memory was looked at.
        startup_s: Seconds to the first request, or of a command, by what was called.
        notes: What was left out, and why.
    """

    plan: Plan
    clients: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    memory: Sample | None = None
    startup_s: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
