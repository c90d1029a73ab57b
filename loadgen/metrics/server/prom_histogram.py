"""A Prometheus histogram: its sum is exact, and every percentile is an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class PromHistogram:
    """Values counted by upper bound.

    Attributes:
        count: The count of all values.
        sum: The sum of all values, in their unit.
        upto: How many values are no greater than each bound; of the last one, which is infinite, all are.
    """

    count: float
    sum: float
    upto: dict[float, float]

    def __add__(self, other: PromHistogram) -> PromHistogram:
        return self._with(other, 1)

    def __sub__(self, other: PromHistogram) -> PromHistogram:
        return self._with(other, -1)

    def _with(self, other: PromHistogram, sign: int) -> PromHistogram:
        bounds = sorted(self.upto.keys() | other.upto.keys())
        upto = {bound: self.upto.get(bound, 0.0) + sign * other.upto.get(bound, 0.0) for bound in bounds}
        return PromHistogram(self.count + sign * other.count, self.sum + sign * other.sum, upto)

    @property
    def mean(self) -> float | None:
        """The exact mean of all values; None where there are none."""
        return self.sum / self.count if self.count > 0 else None

    def interval(self, p: float) -> tuple[float, float | None] | None:
        """Return the bounds of the percentile that interpolates between the two neighbouring ranks.

        Args:
            p: From 0 to 100.

        Returns:
            The lower and the upper one, the upper None where it is infinite; None where there are no values or bounds.
        """
        if self.count <= 0 or not self.upto:
            return None
        rank = (self.count - 1) * p / 100
        low = self._bucket(math.floor(rank) + 1)[0]
        high = self._bucket(math.ceil(rank) + 1)[1]
        return low, None if math.isinf(high) else high

    def _bucket(self, number: int) -> tuple[float, float]:
        """Return the bounds of the bucket that holds the value of this rank, from 1 in ascending order."""
        below = 0.0
        for bound in sorted(self.upto):
            if self.upto[bound] >= number:
                return below, bound
            below = bound
        return below, math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; an infinite bound is null."""
        upto = [[None if math.isinf(bound) else bound, count] for bound, count in sorted(self.upto.items())]
        return {"count": self.count, "sum": self.sum, "upto": upto}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read the histogram from its JSON form.

        Raises:
            KeyError, TypeError, ValueError: `data` is something else.
        """
        upto = {math.inf if bound is None else float(bound): float(count) for bound, count in data["upto"]}
        return cls(float(data["count"]), float(data["sum"]), upto)
