"""Shares: which request gets which fault, for clients that cannot name a fault."""

import random
from dataclasses import dataclass

from loadgen.errors import BadInput
from loadgen.testing.faults.fault import Fault, chosen

FLAG = "--plan"
REMEDY = "write NAME=SHARE or NAME:NUMBER=SHARE, separated by commas, with shares that add up to at most 1"


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
            met = chosen(name.strip(), FLAG)
            if met in [(fault, number) for fault, number, _ in shares]:
                raise BadInput(FLAG, f"{name.strip()!r} is given twice", REMEDY)
            shares.append((*met, share))
        if sum(share for *_, share in shares) > 1 + 1e-9:
            raise BadInput(FLAG, f"the shares of {text!r} add up to more than 1", REMEDY)
        return cls(tuple(shares), seed)

    def of(self, number: int) -> tuple[Fault, int | None] | None:
        """Return the fault of request `number` (from 0, by arrival), with the fault's number; None: no fault."""
        if not self.shares:
            return None
        drawn = random.Random(f"{self.seed}/{number}").random()
        for fault, argument, share in self.shares:
            if drawn < share:
                return fault, argument
            drawn -= share
        return None
