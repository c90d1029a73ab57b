"""Summary: a distribution in a few numbers, as JSON has them."""

from collections.abc import Iterable

from loadgen.histogram import Histogram
from loadgen.words import percentile, to_ms


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


def number(histogram: Histogram, name: str) -> float | None:
    """A number of it as an SLO names it (mean, median, max, p99), in ms; None where nothing was seen."""
    match name:
        case "mean":
            return to_ms(histogram.mean)
        case "max":
            return to_ms(histogram.max)
        case "median":
            return to_ms(histogram.percentile(50))
    return to_ms(histogram.percentile(float(name.removeprefix("p"))))
