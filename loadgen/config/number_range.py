"""`Range`: the numbers that a setting may have."""

import math
import sys
from dataclasses import dataclass
from numbers import Real
from typing import Any

from loadgen.errors import BadInput

ABOVE_0 = math.ulp(0.0)  # the smallest number above 0
BELOW_1, ABOVE_1 = math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0)
FINITE = sys.float_info.max  # the largest number


@dataclass(frozen=True, slots=True)
class Range:
    """A range of numbers.

    Attributes:
        expected: The numbers, for people.
        besides: Another number that is allowed.
    """

    expected: str
    least: float
    most: float = math.inf
    besides: float | None = None

    def check(self, flag: str, value: Any) -> None:
        """Check that the value of a flag is None, or a number of this range; NaN is in none."""
        if value is not None and not (isinstance(value, Real) and self._holds(value)):
            shown = f"{value:,.10g}" if isinstance(value, float) else value
            raise BadInput(flag, f"{shown} is out of range", f"give {self.expected}")

    def _holds(self, number: Any) -> bool:
        return bool(self.least <= number <= self.most or number == self.besides)


FROM_1 = Range("1 or more", 1)
TOKENS = Range("1 token or more", 1)
SHARE = Range("a number from 0 to 1", 0, 1)
