"""`RateProfile`: a rate that changes over a run, such as `10@60s,10-50@30s,50@60s`.

A phase is `RATE@TIME`, a constant rate; `RATE-RATE@TIME`, a linear change from one rate to another; or
`RATE~RATE/PERIOD@TIME`, a sine wave between two rates that begins with the first.
"""

import csv
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from loadgen.errors import BadInput
from loadgen.util.number_format import parse_seconds

if TYPE_CHECKING:
    from loadgen.util.arrays import Floats

T = TypeVar("T", float, "Floats")
FLAG = "--rate-profile"
REMEDY = "write phases as RATE@TIME, such as 10@60s,10-50@30s,50@60s, or name a CSV file of seconds and rates"
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_PHASE = re.compile(rf"{_NUMBER}(?:(-|~){_NUMBER}(?:/([^@]+))?)?@(.+)")


@dataclass(frozen=True)
class Phase:
    """A part of a profile.

    Attributes:
        first_rps: The rate at its start, requests/s.
        last_rps: The rate at its end; of a wave, after half a period.
        length_s: How long it lasts, s.
        period_s: The period of a wave, s; None: the rate changes linearly.
    """

    first_rps: float
    last_rps: float
    length_s: float
    period_s: float | None = None

    def rate_at(self, at_s: float) -> float:
        """Return the rate after so many seconds of the phase, requests/s."""
        if self.period_s is None:
            return self.first_rps + (self.last_rps - self.first_rps) * at_s / self.length_s
        swing = (self.first_rps - self.last_rps) / 2
        return (self.first_rps + self.last_rps) / 2 + swing * math.cos(2 * math.pi * at_s / self.period_s)

    def expected(self, at_s: float) -> float:
        """Return the requests that are expected in so many of its first seconds: the integral of the rate."""
        if self.period_s is None:
            return (self.first_rps + self.rate_at(at_s)) / 2 * at_s
        return self.expected_in_wave(at_s, math.sin)

    def expected_in_wave(self, at_s: T, sin: Callable[[T], T]) -> T:
        """Return `expected` of a wave, for a time or for an array of times, whose sine `sin` returns."""
        assert self.period_s is not None
        swing, angular = (self.first_rps - self.last_rps) / 2, 2 * math.pi / self.period_s
        return (self.first_rps + self.last_rps) / 2 * at_s + swing / angular * sin(angular * at_s)

    @property
    def mean_rps(self) -> float:
        """The mean rate, requests/s."""
        return self.expected(self.length_s) / self.length_s

    def __str__(self) -> str:
        if self.period_s is not None:
            return f"{self.first_rps:g}~{self.last_rps:g}/{self.period_s:g}s@{self.length_s:g}s"
        change = "" if self.first_rps == self.last_rps else f"-{self.last_rps:g}"
        return f"{self.first_rps:g}{change}@{self.length_s:g}s"


@dataclass(frozen=True)
class RateProfile:
    """Phases, one after the other."""

    phases: tuple[Phase, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read phases, or the file of that name, of which each row has seconds from the start and requests/s.

        Between two rows of a file the rate changes linearly; two rows at the same time are a step.

        Raises:
            BadInput: It is neither, or the rate is 0 all the time.
        """
        profile = cls(tuple(_phases(text) if "@" in text else _file_phases(Path(text))))
        if not any(phase.first_rps or phase.last_rps for phase in profile.phases):
            raise BadInput(FLAG, f"{text!r} has no rate above 0", REMEDY)
        return profile

    def __str__(self) -> str:
        return ",".join(map(str, self.phases))

    @property
    def length_s(self) -> float:
        """How long it lasts, s."""
        return sum(phase.length_s for phase in self.phases)

    @property
    def max_rps(self) -> float:
        """The highest rate, requests/s."""
        return max(max(phase.first_rps, phase.last_rps) for phase in self.phases)

    @property
    def mean_rps(self) -> float:
        """The mean rate, requests/s."""
        return sum(phase.expected(phase.length_s) for phase in self.phases) / self.length_s

    def windows_s(self) -> Iterator[tuple[float, float]]:
        """Yield when each phase begins and ends, s from the start of the clock."""
        return pairwise(accumulate((phase.length_s for phase in self.phases), initial=0.0))


def _phases(text: str) -> Iterator[Phase]:
    for word in text.split(","):
        found = _PHASE.fullmatch(word.strip())
        if found is None:
            raise BadInput(FLAG, f"invalid phase {word.strip()!r}", REMEDY)
        first, change, last, period, length = found.groups()
        if (change == "~") != (period is not None):
            problem = f"{word.strip()!r}: a wave has a period, and nothing else has one"
            raise BadInput(FLAG, problem, "write RATE~RATE/PERIOD@TIME, such as 10~50/60s@5m")
        yield Phase(float(first), float(last or first), _seconds(length), None if period is None else _seconds(period))


def _seconds(text: str) -> float:
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise BadInput(FLAG, str(error), "write a time such as 30s or 5m") from error
    if not seconds > 0:
        raise BadInput(FLAG, f"{text!r} is not above 0", "write a time such as 30s or 5m")
    return seconds


def _file_phases(path: Path) -> Iterator[Phase]:
    """Read a CSV file; a first row without numbers is a head."""
    try:
        rows = [row for row in csv.reader(path.read_text().splitlines()) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(FLAG, f"{str(path)!r} is neither a phase nor a readable file ({error})", REMEDY) from error
    points: list[tuple[float, float]] = []
    for number, row in enumerate(rows):
        try:
            at_s, rps = map(float, row)
        except ValueError as error:
            if number == 0:
                continue
            problem = f"{path}, row {number + 1}: {','.join(row)!r} is not a time in seconds and a rate"
            raise BadInput(FLAG, problem, "write rows such as 60,10.5") from error
        if not (at_s >= (points[-1][0] if points else 0) and 0 <= rps < float("inf")):
            problem = f"{path}, row {number + 1}: a time goes back, or a number is out of range"
            raise BadInput(FLAG, problem, "sort the rows by time, from 0, and write rates from 0")
        points.append((at_s, rps))
    if len(points) < 2 or points[0][0] != 0 or points[-1][0] == 0:
        raise BadInput(FLAG, f"{path} has no row at 0 s, or only one moment", "begin at 0, and end with the run")
    for (start_s, first), (end_s, last) in pairwise(points):
        if end_s > start_s:
            yield Phase(first, last, end_s - start_s)
