"""Scale: where a value stands on an axis, where the axis has its ticks, and how its numbers are
written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Self

from loadgen.util.number_format import four_digits, percentile

MAX_TICKS = 4  # of an axis of numbers: more would touch on a narrow screen
STEPS = (1.0, 2.0, 4.0, 5.0)  # between ticks, times a power of ten
LOG_STEPS = (1.0, 2.0, 5.0)  # of a logarithmic axis
APART = 5  # times: beyond that, values fit a logarithmic axis better
LEAST = 1e-3  # what is less, 0 included, stands at the end of a logarithmic axis
SHARES = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999)


class Scale:
    """An axis.

    Attributes:
        unit: Of its numbers; empty where they have none.
    """

    __slots__ = ()
    unit: str

    def share(self, value: float) -> float:
        """Where a value stands: 0 at the beginning of the axis, 1 at its end; what is beyond
        stands at the end.
        """
        raise NotImplementedError

    def ticks(self) -> list[tuple[float, str]]:
        """The values that have a line, with what is written there."""
        raise NotImplementedError

    def written(self, value: float) -> str:
        """A value with its unit, for who asks what exactly stands there."""
        return four_digits(value, self.unit)


@dataclass(frozen=True, slots=True)
class NumberScale(Scale):
    """An axis of numbers between two ends.

    Attributes:
        unit: The unit of its values; empty if they have none.
        low, high: The values at its ends.
    """

    unit: str
    low: float
    high: float


class Linear(NumberScale):
    """From `low` to `high`, in equal steps."""

    __slots__ = ()

    @classmethod
    def over(cls, unit: str, values: Iterable[float | None]) -> Self:
        """From 0 to a tick at or above the highest of the values."""
        most = max((value for value in values if value is not None), default=0.0) or 1.0
        steps = _steps(most / (MAX_TICKS - 1))
        return cls(unit, 0.0, min(step * max(2, math.ceil(most / step - 1e-9)) for step in steps))

    @classmethod
    def around(cls, unit: str, values: Iterable[float]) -> Self:
        """From a tick below the lowest of the values to one above the highest, with room at both
        ends.
        """
        numbers = list(values) or [0.0]
        low = min(numbers)
        high = max(numbers)
        step = _step((high - low or abs(high) or 1.0) / 6)
        return cls(unit, step * math.floor(low / step - 0.5), step * math.ceil(high / step + 0.5))

    def share(self, value: float) -> float:
        """See `Scale`."""
        return _within((value - self.low) / (self.high - self.low))

    def ticks(self) -> list[tuple[float, str]]:
        """See `Scale`."""
        choices = map(self._multiples, _steps((self.high - self.low) / MAX_TICKS))
        places = max(
            (places for places in choices if len(places) <= MAX_TICKS),
            key=lambda places: (len(places) > 2, any(map(self._is_high, places)), len(places)),
        )
        return [(place, short(place)) for place in places]

    def _is_high(self, place: float) -> bool:
        return math.isclose(place, self.high)

    def _multiples(self, step: float) -> list[float]:
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) for number in range(first, last + 1)]


class Log(NumberScale):
    """From `low` to `high`, both above 0, each doubling as wide as any other."""

    __slots__ = ()

    @classmethod
    def over(cls, unit: str, values: Iterable[float | None]) -> Self:
        """From a tick at or below the lowest of the values to one at or above the highest."""
        numbers = [max(value, LEAST) for value in values if value is not None] or [1.0]
        lowest = min(numbers)
        size = 10.0 ** math.floor(math.log10(lowest) + 1e-12)
        low = max(step * size for step in LOG_STEPS if step * size <= lowest * (1 + 1e-9))
        high = _step(max(numbers))
        return cls(unit, low, high if high > low else _step(1.5 * low))

    def share(self, value: float) -> float:
        """See `Scale`."""
        return _within(math.log(max(value, self.low) / self.low) / math.log(self.high / self.low))

    def ticks(self) -> list[tuple[float, str]]:
        """See `Scale`."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        choices = [
            *(product(decades, steps) for steps in (LOG_STEPS, (1.0, 5.0), (1.0,))),
            *(product(decades[::every], (1.0,)) for every in range(2, len(decades) + 1)),
        ]
        places = (
            [
                round(step * 10.0**power, 12)
                for power, step in choice
                if self.low * 0.999 <= step * 10.0**power <= self.high * 1.001
            ]
            for choice in choices
        )
        best = max((choice for choice in places if len(choice) <= MAX_TICKS), key=len)
        return [(value, short(value)) for value in best]


@dataclass(frozen=True, slots=True)
class Nines(Scale):
    """Percentiles as HdrHistogram plots them: as wide from 90 to 99 as from 99 to 99.9. Its values
    are decades.

    Its unit is part of them. A percentile p stands at -log10(1 - p / 100): 0 at 0, 90 at 1, 99 at
    2.

    Attributes:
        high: The end of the axis, in decades.
        unit: Always empty.
    """

    high: float
    unit: str = ""

    def share(self, value: float) -> float:
        """See `Scale`."""
        return _within(value / self.high)

    def ticks(self) -> list[tuple[float, str]]:
        """See `Scale`."""
        places = [(-math.log10(1 - p / 100), f"{p:g}") for p in SHARES]
        shown = [(place, text) for place, text in places if place <= self.high + 1e-9]
        return [*shown[: MAX_TICKS - 1], *shown[MAX_TICKS - 1 :][-1:]]

    def written(self, value: float) -> str:
        """See `Scale`."""
        return percentile(round(100 * (1 - 10**-value), max(0, math.ceil(value - 1e-9))))


@dataclass(frozen=True, slots=True)
class Names(Scale):
    """An axis of names: the first stands at 0 at the upper end, each further one lower by 1.

    Attributes:
        names: From above.
        unit: Always empty.
    """

    names: tuple[str, ...]
    unit: str = ""

    def share(self, value: float) -> float:
        """See `Scale`."""
        return 1 - (value + 0.5) / len(self.names)

    def ticks(self) -> list[tuple[float, str]]:
        """See `Scale`."""
        return [(float(place), name) for place, name in enumerate(self.names)]

    def written(self, value: float) -> str:
        """See `Scale`."""
        return self.names[round(value)]


def fitting_scale(unit: str, values: Iterable[float | None]) -> Scale:
    """An even axis from 0, or a logarithmic one where the values differ so much that the small
    ones would be lost.
    """
    numbers = [value for value in values if value is not None]
    apart = min(numbers, default=0.0) > 0 and max(numbers) > APART * min(numbers)
    return Log.over(unit, numbers) if apart else Linear.over(unit, numbers)


def short(value: float) -> str:
    """A number for which there is little room: 1500 -> "1.5k"."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _step(least: float) -> float:
    """1, 2 or 5 times a power of ten, no less than this."""
    return _steps(least, LOG_STEPS)[0]


def _steps(least: float, steps: tuple[float, ...] = STEPS) -> list[float]:
    """Steps times a power of ten, no less than this, ascending; those of a decade or more."""
    size = 10.0 ** math.floor(math.log10(least))
    sizes = (step * power for power, step in product((size, 10 * size), steps))
    return [step for step in sizes if step >= least * (1 - 1e-9)]


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)
