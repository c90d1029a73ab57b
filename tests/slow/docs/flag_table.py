"""The tables of docs/flags.md: every flag, group by group; `python -m tests.slow.docs.flag_table` writes them."""

import argparse
import dataclasses

from loadgen.cli.flags import run_parser
from loadgen.config.option import GROUPS, flag
from loadgen.config.settings import RunSettings
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs/flags.md"
BEGIN, END = "<!-- flags: made by tests.slow.docs.flag_table -->", "<!-- end of flags -->"


def flag_tables() -> str:
    """In the order of `--help`, each group under a heading of its own: the flag, what it takes, and what it does."""
    known = run_parser()._option_string_actions
    fields = {
        group: [field for field in dataclasses.fields(RunSettings) if field.metadata["group"] == group]
        for group in GROUPS
    }
    head = ("flag", "takes", "what it does")
    return "\n\n".join(
        f"### {group.capitalize()}\n\n{table(head, (_row(known[flag(field.name)]) for field in of_it))}"
        for group, of_it in fields.items()
    )


def _row(action: argparse.Action) -> tuple[str, str, str]:
    takes = action.metavar or " | ".join(map(str, action.choices or ()))
    assert isinstance(takes, str)
    assert action.help is not None
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    return names, takes, action.help.replace("%%", "%")


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, flag_tables(), END)
