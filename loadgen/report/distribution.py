"""Distribution: summary of a latency: mean, standard deviation, extremes and percentiles."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from loadgen.core.histogram import Histogram
from loadgen.util.number_format import percentile, to_ms


class Distribution:
    """Summary of a distribution, ms; None where nothing was measured.

    Args:
        count: How many values there are.
        mean_ms: Their mean.
        std_ms: Their standard deviation.
        min_ms: The exact minimum.
        max_ms: The exact maximum.
        percentiles_ms: By names such as p99 and p99.9, ascending. p50, p90 and p99 are always among them.
    """

    __slots__ = ("count", "max_ms", "mean_ms", "min_ms", "percentiles_ms", "std_ms")

    def __init__(
        self,
        count: int,
        mean_ms: float | None,
        std_ms: float | None,
        min_ms: float | None,
        max_ms: float | None,
        percentiles_ms: Mapping[str, float | None],
    ) -> None:
        self.count, self.mean_ms, self.std_ms, self.min_ms, self.max_ms = count, mean_ms, std_ms, min_ms, max_ms
        self.percentiles_ms = percentiles_ms

    @classmethod
    def of(cls, histogram: Histogram, percentiles: Iterable[float]) -> Self:
        """Summarize a histogram of ns.

        Args:
            histogram: The values.
            percentiles: The requested percentiles, ascending, 0 to 100.
        """
        return cls(
            histogram.count,
            to_ms(histogram.mean),
            to_ms(histogram.std),
            to_ms(histogram.min),
            to_ms(histogram.max),
            {percentile(p): to_ms(histogram.percentile(p)) for p in percentiles},
        )

    @property
    def p50_ms(self) -> float | None:
        """The median, ms."""
        return self.percentiles_ms["p50"]

    @property
    def p90_ms(self) -> float | None:
        """The 90th percentile, ms."""
        return self.percentiles_ms["p90"]

    @property
    def p99_ms(self) -> float | None:
        """The 99th percentile, ms."""
        return self.percentiles_ms["p99"]

    def statistic_ms(self, name: str) -> float | None:
        """Look up a statistic by its column name: mean, std, min, max, or a percentile such as p99.

        Raises:
            KeyError: The run did not ask for this percentile.
        """
        return self.to_dict()[name]

    def to_dict(self) -> dict[str, float | int | None]:
        """Convert to JSON."""
        scalars = {"mean": self.mean_ms, "std": self.std_ms, "min": self.min_ms, "max": self.max_ms}
        return {"count": self.count, **scalars, **self.percentiles_ms}

    @classmethod
    def from_dict(cls, data: Mapping[str, float | int | None]) -> Self:
        """Read the JSON that `to_dict` returns.

        Raises:
            KeyError, TypeError: The JSON is something else.
        """
        found = {name: value for name, value in data.items() if name.startswith("p")}
        count = int(data["count"] or 0)
        return cls(count, data["mean"], data["std"], data["min"], data["max"], found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribution) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment] # it holds a dict

    def __repr__(self) -> str:
        return f"Distribution({self.to_dict()})"


def percentiles_by_nines(histogram: Histogram, places: Sequence[float]) -> list[float | None]:
    """Compute the percentiles of a latency at places of a `Nines` axis: place 2 is p99.

    Args:
        histogram: The latency, ns; not empty.
        places: Powers of ten between a percentile and 100 %, ascending.

    Returns:
        Milliseconds; None beyond the last place that has a value of its own.
    """
    last = math.log10(histogram.count)
    found = [to_ms(value) for value in histogram.percentiles(100 * (1 - 10**-at) for at in places if at <= last + 1e-9)]
    return found + [None] * (len(places) - len(found))
