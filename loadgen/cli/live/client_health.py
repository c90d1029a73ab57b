"""Health: whether this client keeps up, by what the verdict will look at."""

from collections.abc import Iterator

from loadgen.checks.distortion import MAX_BUSY, MIN_BEATS, most_stall_ns
from loadgen.checks.sending import most_lag_ns
from loadgen.metrics.progress import Progress
from loadgen.util.number_format import percent


def troubles(progress: Progress) -> Iterator[str]:
    """What is beyond its limit so far, with that; the verdict is SUSPECT where it stays so."""
    first_ms, gap_ms = progress.ttft.percentile_ms(5), progress.icl.p50_ms
    lag_ms = most_lag_ns(None if first_ms is None else first_ms * 1e6) / 1e6
    if (progress.lag.p99_ms or 0.0) > lag_ms:
        yield f"lag > {lag_ms:.1f} ms"
    stall_ms = most_stall_ns(None if gap_ms is None else gap_ms * 1e6) / 1e6
    if progress.loop_stall.count >= MIN_BEATS and (progress.loop_stall.p99_ms or 0.0) > stall_ms:
        yield f"stall > {stall_ms:.1f} ms"
    if progress.busy_share > MAX_BUSY:
        yield f"busy > {percent(MAX_BUSY)}"
