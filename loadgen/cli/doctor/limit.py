"""A limit of the machine on what a run can do."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from loadgen.util import machine


class State(StrEnum):
    """Whether a limit is high enough for a heavy run."""

    OK = "ok"
    WARN = "warn"
    UNKNOWN = "unknown"  # the system does not show it


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of the machine.

    Attributes:
        name: What is limited.
        state: Whether it is high enough.
        value: Its value, with the unit.
        bounds: What the value means for a run.
        remedy: The command that raises it, or other advice.
    """

    name: str
    state: State
    value: str
    bounds: str
    remedy: str


def enough(holds: bool) -> State:
    """Return OK or WARN."""
    return State.OK if holds else State.WARN


def judged(name: str, holds: bool | None, value: str, *, good: str, bad: str, remedy: str) -> Limit:
    """Return a limit whose value means `good` if it is high enough, else `bad`; None: the system
    does not show it.
    """
    if holds is None:
        return unknown(name, bad)
    return Limit(name, enough(holds), value, good if holds else bad, remedy)


def unknown(name: str, bounds: str) -> Limit:
    """Return a limit that the system does not show."""
    return Limit(name, State.UNKNOWN, "not available", bounds, "")


def line_of(path: Path, pattern: str) -> re.Match[str] | None:
    """Return the first line of a system file that begins with a pattern."""
    return re.search(f"^{pattern}", machine.read_system_file(path), re.MULTILINE)
