"""The lists of docs/flags.md: every flag, group by group; `python -m tests.slow.docs.flag_table`
writes them.
"""

import argparse

from loadgen.cli.flags import run_parser
from loadgen.config.option import GROUPS, flag, options
from loadgen.config.settings import RunSettings
from tests.helpers.documents import between, list_item
from tests.helpers.source import ROOT
from tests.integration.commands.migrating import releases

DOCUMENT = ROOT / "docs/flags.md"
BEGIN, END = "<!-- flags: made by tests.slow.docs.flag_table -->", "<!-- end of flags -->"


def flag_lists() -> str:
    """In the order of `--help`, each group under a heading of its own: the flag, what it takes,
    and what it does; those that `vllm bench serve` does not have in bold.
    """
    known = run_parser()._option_string_actions
    theirs = set().union(*releases("vllm").values())
    fields = {
        group: [option for option in options(RunSettings).values() if option.group == group]
        for group in GROUPS
    }
    return "\n\n".join(
        f"### {group.capitalize()}\n\n"
        + "\n".join(_item(known[flag(option.name)], theirs) for option in of_it)
        for group, of_it in fields.items()
    )


def _item(action: argparse.Action, theirs: set[str]) -> str:
    takes = action.metavar or "|".join(map(str, action.choices or ()))
    assert isinstance(takes, str)
    assert action.help is not None
    names = ", ".join(
        f"`{name} {takes}`" if takes else f"`{name}`" for name in action.option_strings
    )
    if not theirs.intersection(action.option_strings):
        names = f"**{names}**"
    return list_item(f"{names}: {action.help.replace('%%', '%').replace('*', chr(92) + '*')}")


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, flag_lists(), END)
