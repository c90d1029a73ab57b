"""Statistics of a latency as an SLO names them, and how far the client may have moved them."""

import math

from loadgen.core.histogram import Histogram
from loadgen.metrics.snapshot import Snapshot
from loadgen.util.number_format import to_ms

# What a stamp may be off beside its interval: the kernel's own time from the network card to the stamp, and back.
FLOOR_MS = 0.05
CLOCK_MS = 0.002  # the greatest width of a pair of readings by which the kernel's stamps are converted
RESOLUTION = 0.0005  # of a percentile: half a bucket of a histogram


def statistic_ms(histogram: Histogram, name: str, failed: int = 0) -> float | None:
    """Compute a statistic as an SLO names it (mean, median, max, p99), in ms; None where nothing was measured.

    Args:
        histogram: The histogram of the requests that have a value.
        name: Which statistic.
        failed: How many further requests failed. They are above every value: a percentile, and the maximum, is inf
            where it lies among them; a mean leaves them out.
    """
    if name == "mean":
        return to_ms(histogram.mean)
    if name == "max":
        return math.inf if failed else to_ms(histogram.max)
    p = 50.0 if name == "median" else float(name.removeprefix("p"))
    return _percentile(histogram, p, failed) if failed else to_ms(histogram.percentile(p))


def _percentile(histogram: Histogram, p: float, failed: int) -> float | None:
    """Compute a percentile with `failed` infinite values more; inf where fewer than `p` % are finite."""
    count, of = histogram.count, histogram.count + failed
    if count < p / 100 * of * (1 - 1e-12) or not count:  # 0.99 * 300 is a little more than 297
        return math.inf
    position = (of - 1) * (p / 100)
    rank = min(int(position), count - 1)
    low, high = histogram.value_at_rank(rank), histogram.value_at_rank(min(rank + 1, count - 1))
    return to_ms(low + (high - low) * (position - rank) if high > low else low)


def client_error_ms(snapshot: Snapshot, name: str, statistic: str, failed: int = 0) -> float | None:
    """Compute how far a statistic of a latency can be from the truth because of the client.

    Args:
        snapshot: What was measured.
        name: The latency, one of `snapshot.LATENCIES`.
        statistic: mean, median, max or a percentile such as p99.
        failed: How many further requests failed, as for `statistic_ms`.

    Returns:
        Milliseconds; None where the statistic was not measured, lies among failed requests, or is of a file that does
        not say how late its stamps may be.
    """
    if snapshot.counters["unbounded_events"]:
        return None
    value, least, greatest = (
        statistic_ms(histograms[name], statistic, failed)
        for histograms in (snapshot.histograms, snapshot.lower, snapshot.upper)
    )
    if value is None or least is None or greatest is None or math.isinf(value):
        return None
    resolution = 0.0 if statistic == "mean" else RESOLUTION * value
    return max(greatest - value, value - least) + resolution + CLOCK_MS + FLOOR_MS
