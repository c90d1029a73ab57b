"""Fault: one way in which a server can answer, and the steps of which it consists."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from loadgen.errors import BadInput
from loadgen.testing.ask import Ask


class Step(Enum):
    """What a fault does beside writing bytes."""

    CLOSE = auto()  # closes the connection once all is written
    RESET = auto()  # ends the connection with a TCP reset
    SILENCE = auto()  # does nothing more; the client has to end it
    NEXT_REQUEST = auto()  # waits until the connection's next request has come, and goes on


@dataclass(frozen=True, slots=True)
class Together:
    """A step that waits until `count` answers have come to one like it."""

    count: int


# Bytes are written by themselves, the next step following in a later turn of the loop. What has come to its last step
# leaves the connection to the next request.
Steps = Iterator[bytes | Step | Together]


@dataclass(frozen=True, slots=True)
class Fault:
    """An entry of the table.

    Attributes:
        name: As in `X-Fault: NAME` and in a plan.
        does: One sentence.
        default: The number it takes as NAME:NUMBER, where none is given; None: it takes none.
        play: The steps that answer a request.
    """

    name: str
    does: str
    default: int | None
    play: Callable[..., Steps]

    def __str__(self) -> str:
        number = "" if self.default is None else f":{self.default}"
        return f"{self.name + number:<22}  {self.does}"

    def steps(self, ask: Ask, number: int | None = None) -> Steps:
        """Answer `ask`, with the number that was chosen."""
        return self.play(ask) if self.default is None else self.play(ask, self.default if number is None else number)


FAULTS: dict[str, Fault] = {}


def fault(play: Callable[..., Steps]) -> Callable[..., Steps]:
    """Enter a function of an Ask into the table: its name, its docstring, and the default of its one other argument."""
    name = play.__name__.strip("_").replace("_", "-")
    defaults: list[Any] = [p.default for p in list(inspect.signature(play).parameters.values())[1:]]
    does = inspect.cleandoc(play.__doc__ or "").replace("\n", " ")
    FAULTS[name] = Fault(name, does, defaults[0] if defaults else None, play)
    return play


def chosen(choice: str, field: str) -> tuple[Fault, int | None]:
    """The fault and the number that NAME or NAME:NUMBER means.

    Args:
        choice: As the user wrote it.
        field: Where, for the error.

    Raises:
        BadInput: There is no such fault, or it takes no such number.
    """
    name, colon, number = choice.partition(":")
    if name not in FAULTS:
        raise BadInput(field, f"there is no fault {name!r}", "see `python -m loadgen.testing.faulty --help`")
    found = FAULTS[name]
    if not colon:
        return found, None
    if found.default is None or not (number.isascii() and number.isdecimal()):
        takes = "takes no number" if found.default is None else "takes a number from 0"
        raise BadInput(field, f"{choice!r} cannot be played", f"{name} {takes}")
    return found, int(number)
