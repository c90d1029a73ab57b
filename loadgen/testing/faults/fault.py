"""Fault: one way in which a server can answer, as steps; the table of all faults, and the shares
of requests.
"""

import inspect
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from loadgen.engines.sim.http1 import Request
from loadgen.errors import BadInput


class Step(Enum):
    """A step of a fault that is not a write.

    Attributes:
        CLOSE: Closes the connection once all is written.
        RESET: Ends the connection with a TCP reset.
        SILENCE: Does nothing more; the client has to end the connection.
        NEXT_REQUEST: Waits for the connection's next request, and continues.
    """

    CLOSE = auto()
    RESET = auto()
    SILENCE = auto()
    NEXT_REQUEST = auto()


@dataclass(frozen=True, slots=True)
class Together:
    """A step that waits until `count` answers have reached such a step."""

    count: int


@dataclass(frozen=True, slots=True)
class Until:
    """A step that waits until `ms` milliseconds after the arrival of the request."""

    ms: float


# Bytes are one write; the next step follows in a later turn of the event loop. After the last step,
# the connection reads its next request.
Steps = Iterable[bytes | Step | Together | Until]


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
    """Add a function of a Request to the table, with its name, its docstring and the default of its
    second argument.

    Args:
        play: Returns the steps that answer a request; its docstring is one sentence, which --help
            prints.
    """
    name = play.__name__.strip("_").replace("_", "-")
    defaults: list[Any] = [p.default for p in list(inspect.signature(play).parameters.values())[1:]]
    does = inspect.cleandoc(play.__doc__ or "").replace("\n", " ")
    FAULTS[name] = Fault(name, does, defaults[0] if defaults else None, play)
    return play


def always(name: str, does: str, *steps: bytes | Step) -> None:
    """Add a fault that answers every request with the same steps.

    Args:
        name: The name of the fault.
        does: What it does, in one sentence.
        steps: The steps.
    """
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
        raise BadInput(
            field, f"unknown fault {name!r}", "see `python -m loadgen.testing.faulty --help`"
        )
    entry = FAULTS[name]
    if not colon:
        return entry, None
    if entry.default is None or not (number.isascii() and number.isdecimal()):
        takes = "takes no number" if entry.default is None else "takes a number from 0"
        raise BadInput(field, f"{choice!r} cannot be played", f"{name} {takes}")
    return entry, int(number)


FLAG = "--plan"
REMEDY = (
    "write NAME=SHARE or NAME:NUMBER=SHARE, separated by commas, with shares that add up to "
    "at most 1"
)


@dataclass(frozen=True, slots=True)
class Shares:
    """Faults by request number; equal seeds give equal faults.

    Attributes:
        shares: Each fault with its number, and its share of requests.
        seed: Seed of the choice.
    """

    shares: tuple[tuple[Fault, int | None, float], ...] = ()
    seed: int = 0

    @classmethod
    def parse(cls, text: str, seed: int = 0) -> "Shares":
        """Parse text such as `reset=0.01,stall:3=0.02`; an empty text means no faults.

        Raises:
            BadInput: The text is malformed.
        """
        shares = list[tuple[Fault, int | None, float]]()
        for part in text.split(",") if text else []:
            name, equals, written = part.partition("=")
            try:
                share = float(written)
            except ValueError:
                share = -1.0
            if not equals or not 0 <= share <= 1:
                raise BadInput(FLAG, f"{part!r} is not a share", REMEDY)
            fault_and_number = chosen(name.strip(), FLAG)
            if fault_and_number in [(fault, number) for fault, number, _ in shares]:
                raise BadInput(FLAG, f"{name.strip()!r} is given twice", REMEDY)
            shares.append((*fault_and_number, share))
        if sum(share for *_, share in shares) > 1 + 1e-9:
            raise BadInput(FLAG, f"the shares of {text!r} add up to more than 1", REMEDY)
        return cls(tuple(shares), seed)

    def of(self, number: int) -> tuple[Fault, int | None] | None:
        """Return the fault of request `number` (from 0, by arrival), with the fault's number;
        None: no fault.
        """
        if not self.shares:
            return None
        drawn = random.Random(f"{self.seed}/{number}").random()
        for fault, argument, share in self.shares:
            if drawn < share:
                return fault, argument
            drawn -= share
        return None
