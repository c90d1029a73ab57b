"""Statistics of a latency as an SLO names them, and how far the client may have moved them."""

import math

from loadgen.config.slo import GAPS
from loadgen.core.histogram import Histogram
from loadgen.metrics.snapshot import Snapshot
from loadgen.util.number_format import to_ms

# What a stamp may be off beside its interval: the kernel's own time from the network card to the
# stamp, and back.
FLOOR_MS = 0.05
CLOCK_MS = (
    0.002  # the greatest width of a pair of readings by which the kernel's stamps are converted
)
NO_BOUND = "read times, no bound"  # stands where a client error is not known
RESOLUTION = 0.0005  # of a percentile: half a bucket of a histogram


def statistic_ms(histogram: Histogram, name: str, failed: int = 0) -> float | None:
    """Compute a statistic as an SLO names it (mean, median, max, p99), in ms; None where nothing
    was measured.

    Args:
        histogram: The histogram of the requests that have a value.
        name: Which statistic.
        failed: How many further requests failed. They are above every value: a percentile, and the
            maximum, is inf where it lies among them; a mean leaves them out.
    """
    if name == "mean":
        return to_ms(histogram.mean)
    if name == "max":
        return math.inf if failed else to_ms(histogram.max)
    p = 50.0 if name == "median" else float(name.removeprefix("p"))
    return _percentile(histogram, p, failed) if failed else to_ms(histogram.percentile(p))


def _percentile(histogram: Histogram, p: float, failed: int) -> float | None:
    """Compute a percentile with `failed` infinite values more; inf where fewer than `p` % are
    finite.
    """
    count = histogram.count
    of = histogram.count + failed
    if count < p / 100 * of * (1 - 1e-12) or not count:  # 0.99 * 300 is a little more than 297
        return math.inf
    position = (of - 1) * (p / 100)
    rank = min(int(position), count - 1)
    low = histogram.value_at_rank(rank)
    high = histogram.value_at_rank(min(rank + 1, count - 1))
    return to_ms(low + (high - low) * (position - rank) if high > low else low)


def client_error_ms(snapshot: Snapshot, name: str, statistic: str, failed: int = 0) -> float | None:
    """Compute how far a statistic of a latency can be from the truth because of the client.

    It is the distance to the same statistic of the least, or of the greatest, that each value may
    truly have been. For the mean of gaps there is a closer bound, since the gaps of an answer add
    up to its stream, from the first token to the last: whatever is added to one gap is taken from
    the next. So the mean gap is the streams' total length divided by the number of gaps, and only
    first and last tokens can move it. That length is E2EL minus TTFT, both of which are known with
    their bounds:

        least    = (total of the least E2EL    - total of the greatest TTFT) / gaps
        greatest = (total of the greatest E2EL - total of the least TTFT)    / gaps

    Without it, the bound would add up the same uncertain time once for each token that was read in
    it.

    Args:
        snapshot: What was measured.
        name: The latency, one of `snapshot.LATENCIES`.
        statistic: mean, median, max or a percentile such as p99.
        failed: How many further requests failed, as for `statistic_ms`.

    Returns:
        Milliseconds; None where the statistic was not measured, lies among failed requests, or is
        of a file that does not say how late its stamps may be.
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
    if statistic == "mean" and name in GAPS:
        low, high = _mean_gap_ms(snapshot, name)
        least = max(least, low)
        greatest = min(greatest, high)
    return max(greatest - value, value - least) + resolution + CLOCK_MS + FLOOR_MS


def _mean_gap_ms(snapshot: Snapshot, name: str) -> tuple[float, float]:
    """Return the least and the greatest that the mean of gaps may truly be, by the lengths of the
    streams.

    (-inf, inf) where the gaps do not add up to the streams, as where the last events of streams
    bear no token.
    """
    points = snapshot.histograms
    lower = snapshot.lower
    upper = snapshot.upper
    gaps = points[name].count
    streamed = points["e2el_sent"].total - points["ttft_sent"].total
    if (
        abs(streamed - points[name].total) > gaps
    ):  # each gap of several tokens is rounded down to whole ns
        return -math.inf, math.inf
    least = lower["e2el_sent"].total - upper["ttft_sent"].total
    greatest = upper["e2el_sent"].total - lower["ttft_sent"].total
    return least / gaps / 1e6, greatest / gaps / 1e6
