"""What a reader finds in the audited pages, and how much of it the audit finds; `python -m
tests.helpers.audit_corpus`.

`tests/data/pages/expected.json` has for each page what is true (place, rule, what) and what looks
like a mistake and is none. A place is a line, or how the part of a long line is called. A finding
of the audit is a group of one cause. It is right if one of its places is listed as true for its
rule.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from loadgen.lab.audit import Finding, FindingGroup, grouped
from tests.helpers.audited_pages import PAGES, published

EXPECTED = json.loads((PAGES / "expected.json").read_text())


@dataclass
class Score:
    """How the findings of the audit compare with those of a reader.

    Attributes:
        right, wrong: By rule, findings that are true, and others.
        found, missed: By rule, what a reader expects.
        surprises: Findings that no reader listed, or listed as no mistake.
        gaps: What a reader expects and the audit does not find.
    """

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    surprises: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """The share of the findings that are true."""
        return self.right.total() / (self.right.total() + self.wrong.total())

    @property
    def recall(self) -> float:
        """The share of what a reader expects that is found."""
        return self.found.total() / (self.found.total() + self.missed.total())

    def lines(self) -> Iterator[str]:
        """A table by rule, and what differs."""
        yield f"{'rule':20} {'right':>6} {'wrong':>6} {'found':>6} {'missed':>6}"
        for rule in sorted({*self.right, *self.wrong, *self.found, *self.missed}):
            counts = [each[rule] for each in (self.right, self.wrong, self.found, self.missed)]
            yield f"{rule:20} " + " ".join(f"{count:6}" for count in counts)
        yield f"precision {100 * self.precision:.1f} %, recall {100 * self.recall:.1f} %"
        yield from (f"surprise: {line}" for line in self.surprises)
        yield from (f"missed: {line}" for line in self.gaps)


def score(pages: list[str] | None = None) -> Score:
    """Audit these pages, or all of the corpus."""
    made = Score()
    for page in pages or EXPECTED:
        groups = grouped(published(page))
        _score_page(made, page, groups)
    return made


def _score_page(made: Score, page: str, groups: list[FindingGroup]) -> None:
    true = [(place, rule) for place, rule, _ in EXPECTED[page]["true"]]
    for group in groups:
        rule = group.worst.rule
        if any(
            of == rule and any(stands_at(f, place) for f in group.findings) for place, of in true
        ):
            made.right[rule] += 1
        else:
            made.wrong[rule] += 1
            made.surprises.append(f"{page}: {group.worst.place}: {rule}: {group.worst.says}")
    for place, rule, what in EXPECTED[page]["true"]:
        is_found = any(
            g.worst.rule == rule and any(stands_at(f, place) for f in g.findings) for g in groups
        )
        (made.found if is_found else made.missed)[rule] += 1
        if not is_found:
            made.gaps.append(f"{page}: {place}: {rule}: {what}")


def stands_at(finding: Finding, place: int | str) -> bool:
    """Whether a finding is at a place of the corpus."""
    if isinstance(place, int):
        return finding.place.line == place and not finding.place.within
    return finding.place.within.startswith(place)


if __name__ == "__main__":
    print("\n".join(score().lines()))
