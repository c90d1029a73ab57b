"""Number: a quantity as it was printed, with the bounds of its rounding."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass

_NOISE = 1e-9  # of floating point, relative


@dataclass(frozen=True, slots=True)
class Number:
    """A quantity between two bounds; arithmetic on numbers keeps the bounds true.

    Attributes:
        value: As printed, or as computed from what was printed.
        low: It was no less than this.
        high: It was no more than this.
    """

    value: float
    low: float
    high: float

    @classmethod
    def printed(cls, text: str) -> "Number":
        """Of decimal digits as printed: half a unit of the last one on either side; commas are left
        out.

        Raises:
            ValueError: It is no number.
        """
        digits = text.replace(",", "").replace("−", "-")
        value = float(digits)
        half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
        return cls(value, value - half, value + half)

    @classmethod
    def exact(cls, value: float) -> "Number":
        """A count, or another number that was not rounded."""
        return cls(value, value, value)

    @classmethod
    def within(cls, value: float, share: float) -> "Number":
        """A number known up to a share of itself."""
        return cls(value, value - abs(value) * share, value + abs(value) * share)

    def __bool__(self) -> bool:
        return not math.isnan(self.value)

    def __add__(self, other: "Number | float") -> "Number":
        more = _number(other)
        return Number(self.value + more.value, self.low + more.low, self.high + more.high)

    def __sub__(self, other: "Number | float") -> "Number":
        less = _number(other)
        return Number(self.value - less.value, self.low - less.high, self.high - less.low)

    def __mul__(self, other: "Number | float") -> "Number":
        return self._combined(operator.mul, _number(other))

    def __truediv__(self, other: "Number | float") -> "Number":
        """Divide by a number above 0.

        Returns:
            Unknown if the divisor may be 0 or less.
        """
        by = _number(other)
        return UNKNOWN if by.low <= 0 else self._combined(operator.truediv, by)

    def _combined(self, operation: Callable[[float, float], float], other: "Number") -> "Number":
        ends = [operation(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Number(operation(self.value, other.value), min(ends), max(ends))

    def agrees(self, other: "Number") -> bool:
        """Whether both can have been the same before they were rounded."""
        return bool(self) and bool(other) and not self.differs(other)

    def differs(self, other: "Number") -> bool:
        """Whether both cannot have been the same, however they were rounded."""
        return self.above(other) or other.above(self)

    def above(self, other: "Number | float") -> bool:
        """Whether it was more than the other, however both were rounded."""
        than = _number(other)
        return self.low - than.high > _NOISE * max(abs(self.low), abs(than.high))

    def __str__(self) -> str:
        return plain(self.value) if self else "n/a"


UNKNOWN = Number(math.nan, math.nan, math.nan)


def plain(value: float) -> str:
    """A number as findings write it: whole, or with two digits, or three if it is small."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3g}"


def change(ratio: float) -> str:
    """A ratio as the change that it is: 1.5 -> "+50.00%"."""
    return f"{100 * (ratio - 1):+.2f}%"


def off(number: Number, expected: Number) -> float:
    """How far a number is off another one, as a share of that; 0 where the other is 0."""
    return abs(number.value / expected.value - 1) if expected.value else 0.0


def _number(value: "Number | float") -> Number:
    return value if isinstance(value, Number) else Number.exact(value)
