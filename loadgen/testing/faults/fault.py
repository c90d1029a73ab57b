"""Fault: one way in which a server can answer, as steps, and the table of all faults."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from loadgen.errors import BadInput
from loadgen.testing.request import Request


class Step(Enum):
    """A step of a fault that is not a write."""

    CLOSE = auto()  # closes the connection once all is written
    RESET = auto()  # ends the connection with a TCP reset
    SILENCE = auto()  # does nothing more; the client has to end the connection
    NEXT_REQUEST = auto()  # waits for the connection's next request, and continues


@dataclass(frozen=True, slots=True)
class Together:
    """A step that waits until `count` answers have reached such a step."""

    count: int


# Bytes are one write; the next step follows in a later turn of the event loop. After the last step, the connection
# reads its next request.
Steps = Iterable[bytes | Step | Together]


@dataclass(frozen=True, slots=True)
class Fault:
    """An entry of the table.

    Attributes:
        name: The name in `X-Fault: NAME` and in a plan.
        does: What the fault does, in one sentence.
        default: Default of NUMBER in NAME:NUMBER; None: the fault takes no number.
        play: Returns the steps that answer a request.
    """

    name: str
    does: str
    default: int | None
    play: Callable[..., Steps]

    def __str__(self) -> str:
        number = "" if self.default is None else f":{self.default}"
        return f"{self.name + number:<22}  {self.does}"

    def steps(self, request: Request, number: int | None = None) -> Steps:
        """Return the steps that answer `request`, with a number or the default."""
        if self.default is None:
            return self.play(request)
        return self.play(request, self.default if number is None else number)


FAULTS: dict[str, Fault] = {}


def fault(play: Callable[..., Steps]) -> Callable[..., Steps]:
    """Add a function of a Request to the table, with its name, its docstring and the default of its second argument."""
    name = play.__name__.strip("_").replace("_", "-")
    defaults: list[Any] = [p.default for p in list(inspect.signature(play).parameters.values())[1:]]
    does = inspect.cleandoc(play.__doc__ or "").replace("\n", " ")
    FAULTS[name] = Fault(name, does, defaults[0] if defaults else None, play)
    return play


def always(name: str, does: str, *steps: bytes | Step) -> None:
    """Add a fault that answers every request with the same steps."""
    FAULTS[name] = Fault(name, does, None, lambda request: steps)


def chosen(choice: str, field: str) -> tuple[Fault, int | None]:
    """Parse NAME or NAME:NUMBER; return the fault and the number.

    Args:
        choice: The text of the user.
        field: Name of the flag or header, for the error.

    Raises:
        BadInput: The fault is unknown, or does not take this number.
    """
    name, colon, number = choice.partition(":")
    if name not in FAULTS:
        raise BadInput(field, f"unknown fault {name!r}", "see `python -m loadgen.testing.faulty --help`")
    found = FAULTS[name]
    if not colon:
        return found, None
    if found.default is None or not (number.isascii() and number.isdecimal()):
        takes = "takes no number" if found.default is None else "takes a number from 0"
        raise BadInput(field, f"{choice!r} cannot be played", f"{name} {takes}")
    return found, int(number)
