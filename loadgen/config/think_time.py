"""`ThinkTime`: how long a user thinks between an answer and the next request, such as `2`, `1:3` or `exp:2`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

from loadgen.errors import BadInput
from loadgen.util.number_format import parse_seconds

FLAG = "--think-time"
REMEDY = "write seconds, MIN:MAX, exp:MEAN or lognormal:MEAN:STDEV, each up to a day"
MAX_S = 86_400.0
NS_PER_S = 1_000_000_000  # not that of `util.clock`, which imports asyncio
Law = Literal["constant", "uniform", "exp", "lognormal"]
_NUMBERS: dict[Law, int] = {"constant": 1, "uniform": 2, "exp": 1, "lognormal": 2}  # that each law has


@dataclass(frozen=True, slots=True)
class ThinkTime:
    """A distribution of think times.

    Attributes:
        law: Its kind.
        first: The time itself; of uniform times the shortest; else the mean, s.
        second: Of uniform times the longest, of lognormal ones the standard deviation, s.
    """

    law: Law
    first: float
    second: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `--think-time`: SECONDS, MIN:MAX, exp:MEAN or lognormal:MEAN:STDEV.

        Raises:
            BadInput: It is none of these, or longer than a day.
        """
        words = text.split(":")
        law: Law = "uniform" if len(words) == 2 else "constant"
        if words[0] in ("exp", "lognormal"):
            law = "exp" if words.pop(0) == "exp" else "lognormal"
        try:
            numbers = [parse_seconds(word) for word in words]
        except ValueError:
            numbers = []
        made = cls(law, *numbers) if len(numbers) == _NUMBERS[law] else None
        if made is None or not all(0 <= number <= MAX_S for number in numbers) or not made._is_ordered:
            raise BadInput(FLAG, f"invalid time {text!r}", REMEDY)
        return made

    def __str__(self) -> str:
        numbers = (self.first, self.second)[: _NUMBERS[self.law]]
        name = [self.law] if self.law in ("exp", "lognormal") else []
        return ":".join([*name, *(f"{number:g}s" for number in numbers)])

    @property
    def mean_s(self) -> float:
        """The mean, s."""
        return (self.first + self.second) / 2 if self.law == "uniform" else self.first

    @property
    def varies(self) -> bool:
        """Whether each time is drawn; else all are the same."""
        return self.law != "constant"

    def draw_ns(self, uniform: Callable[[], float]) -> int:
        """Draw one think time, ns.

        Args:
            uniform: Draws a number from 0 up to, and without, 1; it is called once or twice.
        """
        return int(self._draw_s(uniform) * NS_PER_S)

    def _draw_s(self, uniform: Callable[[], float]) -> float:
        if self.law == "uniform":
            return self.first + (self.second - self.first) * uniform()
        if self.law == "exp":
            return -self.first * math.log1p(-uniform())
        if self.law == "lognormal" and self.first:
            variance = math.log1p((self.second / self.first) ** 2)  # of the logarithm
            normal = math.sqrt(-2 * math.log1p(-uniform())) * math.cos(2 * math.pi * uniform())  # Box and Muller
            return self.first * math.exp(math.sqrt(variance) * normal - variance / 2)
        return self.first

    @property
    def _is_ordered(self) -> bool:
        """Whether the longest time is no shorter than the shortest."""
        return self.law != "uniform" or self.first <= self.second
