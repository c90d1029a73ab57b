"""Kinds of findings: what each rule is called for a reader, and what a finding of it means."""

from dataclasses import dataclass
from pathlib import Path

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
KINDS = {rule: Kind(*cells) for rule, *cells in table_rows(Path(__file__).with_suffix(".txt"))}
ORDER = tuple(KINDS)


def link(rule: str) -> str:
    """Return the section of the documentation that explains a rule."""
    return f"{DOCS}#{KINDS[rule].section or rule}"
