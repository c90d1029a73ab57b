"""Summary: a distribution in a few numbers, as JSON has them."""

import math
from collections.abc import Iterable

from loadgen.core.histogram import Histogram
from loadgen.util.number_format import percentile, to_ms


def summary(histogram: Histogram, percentiles: Iterable[float]) -> dict[str, float | int | None]:
    """Count, and in ms mean, std, min, max and the percentiles, by names such as p99; null where nothing was seen."""
    found: dict[str, float | int | None] = {
        "count": histogram.count,
        "mean": to_ms(histogram.mean),
        "std": to_ms(histogram.std),
        "min": to_ms(histogram.min),
        "max": to_ms(histogram.max),
    }
    return found | {percentile(p): to_ms(histogram.percentile(p)) for p in percentiles}


def number(histogram: Histogram, name: str, failed: int = 0) -> float | None:
    """A number of it as an SLO names it (mean, median, max, p99), in ms; None where nothing was seen.

    Args:
        histogram: Of the requests that have a value.
        name: Which number.
        failed: Requests beside them that are above every value. A percentile, and the maximum, is inf where it lies
            among them; a mean is without them.
    """
    if name == "mean":
        return to_ms(histogram.mean)
    if name == "max":
        return math.inf if failed else to_ms(histogram.max)
    p = 50.0 if name == "median" else float(name.removeprefix("p"))
    return _percentile(histogram, p, failed) if failed else to_ms(histogram.percentile(p))


def _percentile(histogram: Histogram, p: float, failed: int) -> float | None:
    """As `Histogram.percentile` with so many values more that are infinite; inf where fewer than `p` % are finite."""
    count, of = histogram.count, histogram.count + failed
    if count < p / 100 * of * (1 - 1e-12) or not count:  # 0.99 * 300 is a little more than 297
        return math.inf
    position = (of - 1) * (p / 100)
    rank = min(int(position), count - 1)
    low, high = histogram.value_at_rank(rank), histogram.value_at_rank(min(rank + 1, count - 1))
    return to_ms(low + (high - low) * (position - rank) if high > low else low)
