"""The table of causes in docs/explain.md, made of the catalogue; `python -m
tests.slow.docs.causes` writes it.
"""

from loadgen.explanation.causes import CAUSES
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs" / "explain.md"
BEGIN, END = (
    "<!-- causes: made by python -m tests.slow.docs.causes -->",
    "<!-- end of causes -->",
)


def causes() -> str:
    """Write a row for each cause."""
    rows = [(f"`{cause.name}`", cause.shows) for cause in CAUSES.values()]
    return table(("cause", "how it shows"), rows)


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, causes(), END)
