"""`ThinkTime`: how long a user thinks between an answer and the next request, such as `2`, `1:3` or `exp:2`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from loadgen.errors import BadInput
from loadgen.util.number_format import parse_seconds

FLAG = "--think-time"
REMEDY = "write seconds, MIN:MAX, exp:MEAN or lognormal:MEAN:STDEV, each up to a day"
MAX_S = 86_400.0
Law = Literal["constant", "uniform", "exp", "lognormal"]
_PARAMETERS: dict[Law, int] = {"constant": 1, "uniform": 2, "exp": 1, "lognormal": 2}  # of each law


@dataclass(frozen=True, slots=True)
class ThinkTime:
    """A distribution of think times.

    Attributes:
        law: Its kind.
        parameters_s: The time itself; of uniform times the shortest and the longest; of exponential ones the mean; of
            lognormal ones mean and standard deviation, s.
    """

    law: Law
    parameters_s: tuple[float, ...]

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
            times_s = tuple(map(parse_seconds, words))
        except ValueError:
            times_s = ()
        is_complete = len(times_s) == _PARAMETERS[law] and all(0 <= time_s <= MAX_S for time_s in times_s)
        if not is_complete or (law == "uniform" and times_s[0] > times_s[1]):
            raise BadInput(FLAG, f"invalid time {text!r}", REMEDY)
        return cls(law, times_s)

    def __str__(self) -> str:
        name = [self.law] if self.law in ("exp", "lognormal") else []
        return ":".join([*name, *(f"{time_s:g}s" for time_s in self.parameters_s)])

    @property
    def mean_s(self) -> float:
        """The mean, s."""
        return sum(self.parameters_s) / 2 if self.law == "uniform" else self.parameters_s[0]

    @property
    def varies(self) -> bool:
        """Whether each time is drawn; else all are the same."""
        return self.law != "constant"

    def draw_s(self, uniforms: Sequence[float]) -> float:
        """Draw one think time, s.

        Args:
            uniforms: Two numbers from 0 up to, and without, 1.
        """
        if self.law == "uniform":
            shortest_s, longest_s = self.parameters_s
            return shortest_s + (longest_s - shortest_s) * uniforms[0]
        if self.law == "exp":
            return -self.mean_s * math.log1p(-uniforms[0])
        if self.law == "lognormal" and self.mean_s:
            mean_s, deviation_s = self.parameters_s
            variance = math.log1p((deviation_s / mean_s) ** 2)  # of the logarithm
            normal = math.sqrt(-2 * math.log1p(-uniforms[0])) * math.cos(2 * math.pi * uniforms[1])  # Box and Muller
            return mean_s * math.exp(math.sqrt(variance) * normal - variance / 2)
        return self.mean_s
