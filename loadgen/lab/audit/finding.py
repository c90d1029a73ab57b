"""Finding: what a page or a file says and cannot be true, or does not show what it seems to.

Findings of one cause are a `FindingGroup`, of which the worst is told in full. Groups are ordered,
the worst first, and written as JSON for a program.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from loadgen.util.files import table_rows

DOCS = "docs/audit.md"


@dataclass(frozen=True, slots=True)
class Kind:
    """What the findings of one rule have in common.

    Attributes:
        title: Its name in plain words.
        meaning: What a finding of this kind means for a reader of the page.
        section: The section of docs/audit.md that explains it; empty: the name of the rule.
        claim: The sentence of a finding with a right value; `{says}` is what is printed.
    """

    title: str
    meaning: str
    section: str = ""
    claim: str = "{says}, should be {should_be}"


# By the name of the rule, in the order of how much of a page a finding takes away.
KINDS = {rule: Kind(*cells) for rule, *cells in table_rows(Path(__file__).with_name("kinds.txt"))}
ORDER = tuple(KINDS)


def link(rule: str) -> str:
    """Return the section of the documentation that explains a rule."""
    return f"{DOCS}#{KINDS[rule].section or rule}"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands.

    Attributes:
        file: As it was named.
        line: From 1.
        within: Which part of a line too long to be a place: a block and its number, a section.
            Empty for other lines.
        row, column: Of a table; empty where it is in none.
    """

    file: str
    line: int
    within: str = ""
    row: str = field(default="", compare=False)
    column: str = field(default="", compare=False)

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
        note: It can be true as it is printed, but does not show what it seems to; the exit code is
            left alone.
        cause: What findings of a rule have in common that are of one cause; empty where each has
            its own.
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

    @property
    def claim(self) -> str:
        """What is printed, and what it had to be."""
        form = KINDS[self.rule].claim if self.should_be else "{says}"
        return form.format(says=self.says, should_be=self.should_be)


Findings = Iterator[Finding]  # what a rule yields


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one rule and one cause in one file.

    Attributes:
        findings: The worst first.
    """

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
        further = [finding.to_dict() for finding in self.findings[1:]]
        kept = ("line", "within", "says", "should_be")
        return {
            **self.worst.to_dict(),
            "also": [{key: other[key] for key in kept} for other in further],
        }


def grouped(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Group findings by file, rule and cause: contradictions first, then the worse rules."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        cause = finding.cause or (finding.place, finding.says, finding.should_be)
        groups.setdefault((finding.place.file, finding.rule, finding.note, cause), []).append(
            finding
        )
    made = [FindingGroup(tuple(sorted(members, key=_rank))) for members in groups.values()]
    files = list(dict.fromkeys(group.worst.place.file for group in made))
    return sorted(
        made, key=lambda group: (files.index(group.worst.place.file), *_rank(group.worst))
    )


def _rank(finding: Finding) -> tuple[bool, int, float, int]:
    return finding.note, ORDER.index(finding.rule), -finding.weight, finding.place.line


def to_json(groups: Sequence[FindingGroup]) -> str:
    """A JSON list, one cause an object."""
    return orjson.dumps([group.to_dict() for group in groups], option=orjson.OPT_INDENT_2).decode()
