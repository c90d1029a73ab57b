"""The states of a run and the exit codes in docs/exit-codes.md.

`python -m tests.slow.docs.exit_codes` writes them.
"""

from textwrap import fill

from loadgen.cli import exit_codes as exits
from loadgen.report.run_state import EXIT_CODES, MEANING
from tests.helpers.documents import between
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs" / "exit-codes.md"
BEGIN, END = (
    "<!-- exit codes: made by python -m tests.slow.docs.exit_codes -->",
    "<!-- end of exit codes -->",
)


def exit_codes() -> str:
    """The states of a run with their codes, the codes of all commands, and which of them wins if
    several apply.
    """
    states = [f"| {state} | {MEANING[state]} | {codes} |" for state, codes in EXIT_CODES.items()]
    table = "\n".join(["| state of a run | meaning | exit code |", "|---|---|---|", *states])
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
    first_of_all = "Codes 130, 1 and 9 come before those of the states."
    return "\n\n".join((table, first_of_all, "The codes of all commands:", "\n".join(codes), order))


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, exit_codes(), END)
