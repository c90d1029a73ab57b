"""Cases: all servers that the judge knows, by name, in the order of the matrix."""

from loadgen.errors import BadInput
from loadgen.lab.judge.case import CASES, Case
from loadgen.lab.judge.cases import (  # noqa: F401 - fill the table
    cheats,
    ends,
    fields,
    load,
    prompts,
    report,
    time,
    tokens,
)

GROUPS = ("time", "tokens", "load", "prompts", "ends", "report", "cheats")
CONTROL = "steady"  # what a tool says of this sound server, it does not say of another

__all__ = ["CASES", "CONTROL", "GROUPS", "Case", "chosen"]


def chosen(names: list[str]) -> list[Case]:
    """Return the cases of these names or groups, the control first; all of them without names.

    Raises:
        BadInput: A name is neither.
    """
    for name in names:
        if name not in CASES and name not in GROUPS:
            raise BadInput(
                "--case",
                f"unknown case {name!r}",
                f"name a case of `loadgen judge --list`, or a group: {', '.join(GROUPS)}",
            )
    wanted = [
        case
        for case in CASES.values()
        if not names or case.name in names or case.group in names or case.name == CONTROL
    ]
    return sorted(wanted, key=lambda case: (case.name != CONTROL, GROUPS.index(case.group)))
