"""Limit: one thing of the machine that bounds what a run can do."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """Whether a limit is in the way of a heavy run."""

    OK = "ok"
    LOW = "low"
    UNKNOWN = "unknown"  # the system does not tell


@dataclass(frozen=True, slots=True)
class Limit:
    """What was found of one.

    Attributes:
        name: What is limited.
        state: Whether it is enough.
        value: What was read, with its unit.
        bounds: What follows from it for a run.
        remedy: The command that raises it, or what else helps.
    """

    name: str
    state: State
    value: str
    bounds: str
    remedy: str

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)


def enough(is_so: bool) -> State:
    """OK or LOW."""
    return State.OK if is_so else State.LOW


def unknown(name: str, bounds: str) -> Limit:
    """A limit of which the system tells nothing."""
    return Limit(name, State.UNKNOWN, "not told", bounds, "")
