"""The exit codes in docs/checks.md, as `loadgen --help` tells them.

`python -m tests.slow.docs.exit_codes` writes them.
"""

from loadgen.cli import exit_codes as exits
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs" / "checks.md"
BEGIN, END = "<!-- exit codes: made by python -m tests.slow.docs.exit_codes -->", "<!-- end of exit codes -->"


def exit_codes() -> str:
    """The codes of all commands, and which of them wins if several apply."""
    first, *others, last, _ = exits.SEVERITY
    order = f"If several codes apply, the first of {', '.join(map(str, (first, *others, last)))} is used."
    return f"{table(('code', 'when'), ((str(code), when) for code, when in exits.WHEN.items()))}\n\n{order}"


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, exit_codes(), END)
