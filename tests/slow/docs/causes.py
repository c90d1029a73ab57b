"""The table of causes in docs/explain.md, made of the catalogue; `python -m
tests.slow.docs.causes` writes it.
"""

from loadgen.explanation.causes import CAUSES
from tests.helpers.documents import between
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs" / "explain.md"
BEGIN, END = (
    "<!-- causes: made by python -m tests.slow.docs.causes -->",
    "<!-- end of causes -->",
)


def table() -> str:
    """Write a row for each cause."""
    rows = [f"| `{cause.name}` | {cause.side} | {cause.shows} |" for cause in CAUSES.values()]
    return "\n".join(["| cause | side | how it shows |", "|---|---|---|", *rows])


if __name__ == "__main__":
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(text.replace(between(text, BEGIN, END), f"\n{table()}\n"))
