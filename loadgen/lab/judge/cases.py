"""Cases: all servers that the judge knows, by name, in the order of the matrix: cases.yaml."""

from functools import partial
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.lab.judge import foul_plays, plays
from loadgen.lab.judge.case import Case, Disturbance, Load

PLAYS: dict[str, Any] = vars(plays) | vars(foul_plays)
CONTROL = "steady"  # what a tool says of this sound server, it does not say of another


def _read() -> dict[str, Case]:
    import yaml

    table = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    cases = [
        _case(group, name, common | entry)
        for group, common in ((group, entries.pop("all")) for group, entries in table.items())
        for name, entry in table[group].items()
    ]
    return {case.name: case for case in cases}


def _case(group: str, name: str, entry: dict[str, Any]) -> Case:
    play = partial(PLAYS[entry.pop("play", CONTROL)], **entry.pop("with", {}))
    if entry.pop("every_second", False):
        play = partial(foul_plays.every_second, play)
    made = {
        "figures": tuple(entry["figures"]),
        "load": Load(**entry.get("load", {})),
        "disturbance": Disturbance(entry.get("disturbance", "")),
    }
    return Case(name, group, play=play, **entry | made)


CASES = _read()
GROUPS = tuple(dict.fromkeys(case.group for case in CASES.values()))


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
    return [
        case
        for case in CASES.values()
        if not names or case.name in names or case.group in names or case.name == CONTROL
    ]
