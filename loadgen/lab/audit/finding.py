"""Finding: one thing that a page or a file says and that cannot be, or does not show what it seems to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands.

    Attributes:
        file: As it was named.
        line: From 1.
        within: Which part of a line too long to be a place: a block and its number, a section. Empty for other lines.
    """

    file: str
    line: int
    within: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" ({self.within})" if self.within else "")


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        place: Where it stands.
        rule: The name of the rule, as docs/audit.md has it.
        says: What is printed there.
        should_be: What it had to be; empty where nobody can know.
        why: The arithmetic, in one line.
        note: It can be true as it is printed, but does not show what it seems to; the exit code is left alone.
        cause: What findings of a rule have in common that are of one cause; empty where each has its own.
        weight: How far off it is, by which findings of one rule are ordered; relative.
    """

    place: Place
    rule: str
    says: str
    should_be: str
    why: str
    note: bool = False
    cause: str = ""
    weight: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON form; `within` is null where the line is place enough."""
        return {
            "file": self.place.file,
            "line": self.place.line,
            "within": self.place.within or None,
            "rule": self.rule,
            "says": self.says,
            "should_be": self.should_be or None,
            "why": self.why,
            "note": self.note,
        }


Findings = Iterator[Finding]  # what a rule yields


def claim(finding: Finding) -> str:
    """The rule of a finding, what is printed, and what it had to be."""
    return f"{finding.rule}: {finding.says}" + (f", should be {finding.should_be}" if finding.should_be else "")
