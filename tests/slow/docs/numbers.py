"""The tables of docs/numbers.md: what each number means; `python -m tests.slow.docs.numbers` writes them."""

import re

from loadgen.report.run_page.glossary import GROUPS, Term
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs" / "numbers.md"
BEGIN, END = "<!-- numbers: made by python -m tests.slow.docs.numbers -->", "<!-- end of numbers -->"


def tables() -> str:
    """Each group under a heading of its own."""
    return "\n\n".join(f"## {group}\n\n{_table(terms)}" for group, terms in GROUPS.items())


def _table(terms: dict[str, Term]) -> str:
    return table(("number", "what it is"), ((one.name, _written(one.about)) for one in terms.values()))


def _written(about: str) -> str:
    """In Markdown, of both clocks."""
    return re.sub(r"--[a-z-]+", r"`\g<0>`", about.format(clock="from due, and from sent,"))


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, tables(), END)
