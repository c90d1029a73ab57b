"""The exit codes in docs/exit-codes.md, as `loadgen --help` tells them.

`python -m tests.slow.docs.exit_codes` writes them.
"""

from textwrap import fill

from loadgen.cli import exit_codes as exits
from tests.helpers.documents import between
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs" / "exit-codes.md"
BEGIN, END = (
    "<!-- exit codes: made by python -m tests.slow.docs.exit_codes -->",
    "<!-- end of exit codes -->",
)


def exit_codes() -> str:
    """The codes of all commands, and which of them wins if several apply."""
    first, *others, last, _ = exits.SEVERITY
    order = (
        f"If several codes apply, the first of {', '.join(map(str, (first, *others, last)))} "
        "is used."
    )
    codes = (
        fill(
            f"- **{code}**: {when}",
            120,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for code, when in exits.WHEN.items()
    )
    return "\n".join(codes) + f"\n\n{order}"


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, exit_codes(), END)
