"""The definitions of docs/numbers.md: what each number means; `python -m tests.slow.docs.numbers` writes them."""

import re
from textwrap import fill

from loadgen.report.run_page.glossary import GROUPS, Term
from tests.helpers.documents import between
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs" / "numbers.md"
BEGIN, END = "<!-- numbers: made by python -m tests.slow.docs.numbers -->", "<!-- end of numbers -->"


def definitions() -> str:
    """Each number under its heading, each group under a heading of its own."""
    return "\n\n".join(f"## {group}\n\n{_defined(terms)}" for group, terms in GROUPS.items())


def _defined(terms: dict[str, Term]) -> str:
    return "\n\n".join(f"### {one.name}\n\n{_wrapped(_written(one.about))}" for one in terms.values())


def _wrapped(text: str) -> str:
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _written(about: str) -> str:
    """In Markdown, of both clocks."""
    return re.sub(r"--[a-z-]+", r"`\g<0>`", about.format(clock="from due, and from sent,"))


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, definitions(), END)
