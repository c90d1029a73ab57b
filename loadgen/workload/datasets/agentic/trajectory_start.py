"""`TrajectoryStart`: where each recorded session begins."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from loadgen.errors import BadInput
from loadgen.util.number_format import parse_range, parse_share

FLAG = "--trajectory-start"


@dataclass(frozen=True, slots=True)
class TrajectoryStart:
    """The share of the calls of a session that is left out, drawn uniformly for each session by itself.

    Attributes:
        low, high: The bounds of the share, 0 <= low <= high < 1.
        seed: The seed of the draws.
    """

    low: float
    high: float
    seed: int

    @classmethod
    def parse(cls, text: str, seed: int) -> Self:
        """Parse `--trajectory-start`: SHARE or MIN:MAX.

        Raises:
            BadInput: It is neither, or the range is empty.
        """
        bounds = parse_range(text, parse_share)
        if bounds is None or not 0 <= bounds[0] <= bounds[1] < 1:
            remedy = "give a share from 0 to below 1 such as 0.25 or 25%, or MIN:MAX such as 25%:75%"
            raise BadInput(FLAG, f"invalid share {text!r}", remedy)
        return cls(*bounds, seed)

    def left_out(self, session: int, calls: int) -> int:
        """Return how many of the calls of a session, by its number in the run, are left out: never all of them."""
        if self.high == 0:
            return 0
        share = np.random.default_rng([self.seed, *b"start", session]).uniform(self.low, self.high)
        return int(share * calls)
