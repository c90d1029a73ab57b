"""`LoadProfile`: a load that changes over a run, such as `10@60s,10-50@30s,50@60s`.

Its values are rates in requests/s, or numbers of requests in flight. A phase is `VALUE@TIME`, a
constant load; `VALUE-VALUE@TIME`, a linear change from one value to another;
`VALUE~VALUE/PERIOD@TIME`, a sine wave between two values that begins with the first;
`VALUE/ON+OFF@TIME`, which is read as constant phases of the value and of 0 in turn; or
`VALUE..VALUE/STEPS@TIME`, which is read as constant phases of equal lengths and steps.
"""

import math
import re
from collections.abc import Iterator
from itertools import accumulate, count, cycle, pairwise
from pathlib import Path
from typing import Self

from msgspec import Struct

from loadgen.errors import BadInput, setting
from loadgen.util.number_format import parse_seconds

MAX_RATE = 1e6  # requests/s: far above what one host can send, far below what overflows int64 ns
MAX_IN_FLIGHT = (
    1_000_000  # Linux lets a process open as many files, and so connections (fs.nr_open)
)
MAX_PIECES = 1000  # of a load that is on and off, or of steps: the report has a row for each
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_PHASE = rf"{_NUMBER}(?:(-|~|\.\.){_NUMBER})?(?:/([^@]+))?@(.+)"


class Quantity(Struct, frozen=True):
    """What the values of a profile are.

    Attributes:
        field: The setting that takes the profile, as errors name it.
        name: The quantity, in a word.
        unit: Its unit.
        most: The highest value.
        heads: What a column of a file with its values may be called.
        whole: Whether its values are whole numbers.
    """

    field: str
    name: str
    unit: str
    most: float
    heads: tuple[str, ...]
    whole: bool = False

    @property
    def remedy(self) -> str:
        """How a profile is written."""
        form = f"{self.name.upper()}@TIME, such as 10@60s,10-50@30s,50@60s"
        return f"write phases as {form}, or name a CSV file of seconds and {self.unit}"


TIME_HEADS = ("seconds", "s", "sec", "time", "time_s", "time_seconds", "t")
RATE = Quantity(
    *(setting.rate_profile, "rate", "req/s", MAX_RATE),
    heads=(
        "rate",
        "request_rate",
        "rps",
        "qps",
        "req/s",
        "requests_per_s",
        "requests_per_second",
    ),
)
CONCURRENCY = Quantity(
    *(setting.concurrency_profile, "concurrency", "requests in flight", MAX_IN_FLIGHT),
    heads=(
        "concurrency",
        "max_concurrency",
        "requests",
        "in_flight",
        "requests_in_flight",
        "users",
    ),
    whole=True,
)


class Phase(Struct, frozen=True):
    """A part of a profile.

    Attributes:
        first: The value at its start: a rate in requests/s, or requests in flight.
        last: The value at its end; of a wave, after half a period.
        length_s: How long it lasts, s.
        period_s: The period of a wave, s; None: the value changes linearly.
    """

    first: float
    last: float
    length_s: float
    period_s: float | None = None

    def value_at(self, at_s: float) -> float:
        """Return the value after so many seconds of the phase."""
        if self.period_s is None:
            return self.first + (self.last - self.first) * at_s / self.length_s
        swing = (self.first - self.last) / 2
        return (self.first + self.last) / 2 + swing * math.cos(2 * math.pi * at_s / self.period_s)

    def integral(self, at_s: float) -> float:
        """Return the integral of the value over so many of its first seconds: of a rate, the
        expected requests.
        """
        if self.period_s is None:
            return (self.first + self.value_at(at_s)) / 2 * at_s
        swing, angular = (self.first - self.last) / 2, 2 * math.pi / self.period_s
        return (self.first + self.last) / 2 * at_s + swing / angular * math.sin(angular * at_s)

    @property
    def mean(self) -> float:
        """The mean value."""
        return self.integral(self.length_s) / self.length_s

    def levels(self) -> Iterator[tuple[float, int]]:
        """Yield the value rounded to a whole number, from the start on and whenever that
        changes: seconds, number.
        """
        level = math.floor(self.first + 0.5)
        yield 0.0, level
        for number in count():  # the pieces in which the value only rises or only falls
            start_s, end_s = ((number + more) * self._piece_s for more in (0, 1))
            if start_s >= self.length_s:
                return
            rises = (self.first < self.last) == (number % 2 == 0)
            aim = math.floor(self.value_at(min(end_s, self.length_s)) + 0.5)
            while level != aim and (level < aim) == rises:
                level += 1 if rises else -1
                yield self._when(level - 0.5 if rises else level + 0.5, number), level

    def __str__(self) -> str:
        if self.period_s is not None:
            return f"{self.first:g}~{self.last:g}/{self.period_s:g}s@{self.length_s:g}s"
        change = "" if self.first == self.last else f"-{self.last:g}"
        return f"{self.first:g}{change}@{self.length_s:g}s"

    @property
    def _piece_s(self) -> float:
        """For how long the value only rises or only falls, s."""
        return self.length_s if self.period_s is None else self.period_s / 2

    def _when(self, value: float, piece: int) -> float:
        """Return when a value is passed in a piece, s."""
        if self.period_s is None:
            return (value - self.first) / (self.last - self.first) * self.length_s
        share = math.acos(1 - 2 * (value - self.first) / (self.last - self.first)) / math.pi
        return (piece + (share if piece % 2 == 0 else 1 - share)) * self._piece_s


class LoadProfile(Struct, frozen=True):
    """Phases, one after the other."""

    phases: tuple[Phase, ...]

    @classmethod
    def parse(cls, text: str, quantity: Quantity = RATE) -> Self:
        """Read phases, or the file of that name, of which each row has seconds from the start and a
        value.

        Between two rows of a file the value changes linearly; two rows at the same time are a step.

        Raises:
            BadInput: It is neither, or the value is 0 all the time.
        """
        profile = cls(
            tuple(_phases(text, quantity) if "@" in text else _file_phases(Path(text), quantity))
        )
        values = [value for phase in profile.phases for value in (phase.first, phase.last)]
        if not any(values):
            raise BadInput(
                quantity.field, f"{text!r} has no {quantity.name} above 0", quantity.remedy
            )
        for value in values:
            if value > quantity.most:
                problem = f"{value:,.10g} {quantity.unit}"
                raise BadInput(
                    quantity.field, problem, f"give at most {quantity.most:,.0f} {quantity.unit}"
                )
            if quantity.whole and not value.is_integer():
                raise BadInput(quantity.field, f"{value:g} {quantity.unit}", "give whole numbers")
        return profile

    def __str__(self) -> str:
        return ",".join(map(str, self.phases))

    @property
    def length_s(self) -> float:
        """How long it lasts, s."""
        return sum(phase.length_s for phase in self.phases)

    @property
    def highest(self) -> float:
        """The highest value."""
        return max(max(phase.first, phase.last) for phase in self.phases)

    @property
    def mean(self) -> float:
        """The mean value."""
        return sum(phase.integral(phase.length_s) for phase in self.phases) / self.length_s

    def windows_s(self) -> Iterator[tuple[float, float]]:
        """Yield when each phase begins and ends, s from the start of the clock."""
        return pairwise(accumulate((phase.length_s for phase in self.phases), initial=0.0))

    def levels(self) -> Iterator[tuple[float, int]]:
        """Yield the rounded value from the start on and whenever it changes, and 0 at the end:
        seconds, number.
        """
        for phase, (start_s, _) in zip(self.phases, self.windows_s(), strict=True):
            for at_s, level in phase.levels():
                yield start_s + at_s, level
        yield self.length_s, 0


def _phases(text: str, quantity: Quantity) -> Iterator[Phase]:
    for word in text.split(","):
        phase = re.fullmatch(_PHASE, word.strip())
        if phase is None:
            raise BadInput(quantity.field, f"invalid phase {word.strip()!r}", quantity.remedy)
        first, change, last, period, length = phase.groups()
        if change is None and period is not None and "+" in period:
            yield from _on_and_off(float(first), period, _seconds(length, quantity), quantity)
            continue
        if change == "..":
            length_s = _seconds(length, quantity)
            yield from _steps(float(first), float(last), period or "", length_s, quantity)
            continue
        if (change == "~") != (period is not None):
            problem = f"{word.strip()!r}: a wave has a period, and nothing else has one"
            name = quantity.name.upper()
            remedy = (
                f"write {name}~{name}/PERIOD@TIME, such as 10~50/60s@5m; or "
                f"{name}/ON+OFF@TIME, such as 50/5s+10s@5m"
            )
            raise BadInput(quantity.field, problem, remedy)
        period_s = None if period is None else _seconds(period, quantity)
        yield Phase(float(first), float(last or first), _seconds(length, quantity), period_s)


def _on_and_off(value: float, period: str, length_s: float, quantity: Quantity) -> Iterator[Phase]:
    on_s, off_s = (_seconds(part, quantity) for part in period.split("+", 1))
    if length_s / (on_s + off_s) > MAX_PIECES / 2:
        problem = f"{length_s:g} s are more than {MAX_PIECES:,} times on or off"
        raise BadInput(quantity.field, problem, "give a shorter time, or longer ones on and off")
    start_s = 0.0
    for phase_value, phase_s in cycle(((value, on_s), (0.0, off_s))):
        if start_s >= length_s:
            return
        yield Phase(phase_value, phase_value, min(phase_s, length_s - start_s))
        start_s += phase_s


def _steps(
    first: float, last: float, count: str, length_s: float, quantity: Quantity
) -> Iterator[Phase]:
    if not re.fullmatch("[0-9]{1,4}", count) or not 2 <= int(count) <= MAX_PIECES:
        name = quantity.name.upper()
        remedy = f"write {name}..{name}/STEPS@TIME with 2 to {MAX_PIECES:,}, such as 10..50/5@10m"
        raise BadInput(quantity.field, f"{count!r} is not a number of steps", remedy)
    steps = int(count)
    for step in range(steps):
        value = first + (last - first) * step / (steps - 1)
        yield Phase(value, value, length_s / steps)


def _seconds(text: str, quantity: Quantity) -> float:
    remedy = "write a time such as 30s or 5m"
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise BadInput(quantity.field, str(error), remedy) from error
    if not seconds > 0:
        raise BadInput(quantity.field, f"{text!r} is not above 0", remedy)
    return seconds


def _file_phases(path: Path, quantity: Quantity) -> Iterator[Phase]:
    """Read a CSV file; a first row that names the columns is a head."""
    import csv  # 1 ms of CPU time, for few runs

    flag = quantity.field
    try:
        rows = [row for row in csv.reader(path.read_text("utf-8-sig").splitlines()) if row]
    except (OSError, UnicodeDecodeError) as error:
        problem = f"{str(path)!r} is neither a phase nor a readable file ({error})"
        raise BadInput(flag, problem, quantity.remedy) from error
    points: list[tuple[float, float]] = []
    for number, row in enumerate(rows):
        try:
            at_s, value = map(float, row)
        except ValueError as error:
            names = [re.sub(r"[\s-]+", "_", name.strip().lower()) for name in row]
            is_head = len(names) == 2 and names[0] in TIME_HEADS and names[1] in quantity.heads
            if number == 0 and is_head:
                continue
            problem = (
                f"{path}, row {number + 1}: {','.join(row)!r} is not a time in seconds and "
                f"a {quantity.name}"
            )
            remedy = (
                f"write rows such as 60,10, below the head seconds,{quantity.name} or without one"
            )
            raise BadInput(flag, problem, remedy) from error
        if not (at_s >= (points[-1][0] if points else 0) and 0 <= value < float("inf")):
            problem = f"{path}, row {number + 1}: a time goes back, or a number is out of range"
            raise BadInput(flag, problem, "sort the rows by time, from 0, and write numbers from 0")
        points.append((at_s, value))
    if len(points) < 2 or points[0][0] != 0 or points[-1][0] == 0:
        raise BadInput(
            flag,
            f"{path} has no row at 0 s, or only one moment",
            "begin at 0, and end with the run",
        )
    for (start_s, first), (end_s, last) in pairwise(points):
        if end_s > start_s:
            yield Phase(first, last, end_s - start_s)
