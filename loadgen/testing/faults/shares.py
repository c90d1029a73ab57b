"""Shares: which request meets which fault, for clients that cannot say so themselves."""

import random
from dataclasses import dataclass

from loadgen.errors import BadInput
from loadgen.testing.faults.fault import Fault, chosen

FIELD = "--plan"
REMEDY = "write NAME=SHARE or NAME:NUMBER=SHARE, separated by commas, with shares that add up to at most 1"


@dataclass(frozen=True, slots=True)
class Shares:
    """Faults by request number: the same for the same seed.

    Attributes:
        shares: Each fault with its number, and the share of requests that meet it.
        seed: Of the draws.
    """

    shares: tuple[tuple[Fault, int | None, float], ...] = ()
    seed: int = 0

    @classmethod
    def parse(cls, text: str, seed: int = 0) -> "Shares":
        """Read e.g. `reset=0.01,stall:3=0.02`; an empty text is no fault at all.

        Raises:
            BadInput: It is not written so.
        """
        shares = list[tuple[Fault, int | None, float]]()
        for part in text.split(",") if text else []:
            name, equals, written = part.partition("=")
            try:
                share = float(written)
            except ValueError:
                share = -1.0
            if not equals or not 0 <= share <= 1:
                raise BadInput(FIELD, f"{part!r} is no share", REMEDY)
            met = chosen(name.strip(), FIELD)
            if met in [(fault, number) for fault, number, _ in shares]:
                raise BadInput(FIELD, f"{name.strip()!r} stands in it twice", REMEDY)
            shares.append((*met, share))
        if sum(share for *_, share in shares) > 1 + 1e-9:
            raise BadInput(FIELD, f"the shares of {text!r} are more than 1 together", REMEDY)
        return cls(tuple(shares), seed)

    def of(self, number: int) -> tuple[Fault, int | None] | None:
        """The fault that request `number` (from 0, in order of arrival) meets, with its number; None: it meets none."""
        if not self.shares:
            return None
        drawn = random.Random(f"{self.seed}/{number}").random()
        for fault, argument, share in self.shares:
            if drawn < share:
                return fault, argument
            drawn -= share
        return None
