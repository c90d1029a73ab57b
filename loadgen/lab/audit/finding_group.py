"""FindingGroup: findings of one cause, of which the worst is told in full; and the order of groups, worst first."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from loadgen.lab.audit.finding import Finding

# Rules in the order of how much of a page a finding takes away.
ORDER = (
    "copied",  # it is not this page's measurement
    "verdict",
    "recommended",
    "shell",
    "model",
    "hardware",
    "summary-line",
    "success-rate",
    "failures",
    "duplicate",
    "extrapolated",
    "percent",
    "percent-of-rates",
    "gain",
    "result-line",
    "cell",
    "latency-cell",
    "baseline",
    "base",
    "label",
    "turned-off",
    "idle-option",
    "row-without-stage",
    "throughput",
    "tpot",
    "itl-zero",
    "itl",
    "itl-coalesced",
    "latency-zero",
    "latency-bounds",
    "percentile-order",
    "in-flight",
    "peak-throughput",
    "rate-limited",
    "repeat",
    "noise",
    "hidden-loss",
    "reference",
    "tie",
    "unsteady",
    "one-sided",
    "untried",
    "incumbent",
    "work",
    "announced",
    "unreported",
    "advice",
    "client",
    "script",
    "reprinted",
    "stage-number",
    "hardware-count",
    "itl-diluted",
    "itl-bundled",
    "itl-stalled",
    "peak-concurrency",
)


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one rule and one cause in one file, the worst first."""

    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Finding:
        """The finding that stands for all."""
        return self.findings[0]

    @property
    def note(self) -> bool:
        """Whether they contradict nothing: all of them, or none."""
        return self.worst.note

    def to_dict(self) -> dict[str, Any]:
        """JSON form: the worst, and the others under `also`."""
        others = [finding.to_dict() for finding in self.findings[1:]]
        kept = ("line", "within", "says", "should_be")
        return {**self.worst.to_dict(), "also": [{key: other[key] for key in kept} for other in others]}


def grouped(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Group findings by file, rule and cause: contradictions before notes, and those of worse rules first."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        own = finding.cause or (finding.place, finding.says, finding.should_be)
        groups.setdefault((finding.place.file, finding.rule, finding.note, own), []).append(finding)
    made = [FindingGroup(tuple(sorted(found, key=_rank))) for found in groups.values()]
    files = list(dict.fromkeys(group.worst.place.file for group in made))
    return sorted(made, key=lambda group: (files.index(group.worst.place.file), *_rank(group.worst)))


def _rank(finding: Finding) -> tuple[bool, int, float, int]:
    return finding.note, ORDER.index(finding.rule), -finding.weight, finding.place.line
