"""The table of docs/flags.md: every flag of the settings; `python -m tests.docs.flag_table` writes it."""

import dataclasses

from loadgen.cli.flags import run_parser
from loadgen.options import GROUPS, flag
from loadgen.settings import RunSettings
from tests.documents import between, table
from tests.source import ROOT

DOCUMENT = ROOT / "docs/flags.md"
BEGIN, END = "<!-- flags: made by tests.docs.flag_table -->", "<!-- end of flags -->"


def flag_table() -> str:
    """In the order of `--help`: the flag, what it takes, and what it does."""
    known = run_parser()._option_string_actions
    rows = []
    for field in sorted(dataclasses.fields(RunSettings), key=lambda field: GROUPS.index(field.metadata["group"])):
        action = known[flag(field.name)]
        takes = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
        assert isinstance(takes, str)
        assert action.help is not None
        names = ", ".join(f"`{name}`" for name in action.option_strings)
        rows.append((field.metadata["group"], names, takes, action.help.replace("%%", "%")))
    return table(["group", "flag", "takes", "what it does"], rows)


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, flag_table(), END)
