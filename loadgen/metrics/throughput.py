"""Rates over time: totals over the run's wall time, the peak second, the steady part, the peak
concurrency.
"""

import numpy as np

from loadgen.metrics.snapshot import BIN_NS, Snapshot
from loadgen.util.arrays import Int64s

SECOND = 1_000_000_000 // BIN_NS  # bins in a second
MIN_STEADY_NS = 1_000_000_000
MIN_ANSWERS = 10  # of fewer, the times of the first and the last decide the rate


def wall_ns(snapshot: Snapshot) -> int:
    """Return the ns from the first send to the end of the last request, refused ones included; 0
    without sends.
    """
    was_sent = snapshot.sent >= 0
    if not was_sent.any():
        return 0
    return int(snapshot.closed.max() - snapshot.sent[was_sent].min())


def per_second(count: float | None, snapshot: Snapshot) -> float | None:
    """Divide a count by the duration of a run, from the first send to the end of the last request;
    None where it is unknown, or nothing was sent.
    """
    seconds = wall_ns(snapshot) / 1e9
    return count / seconds if seconds and count is not None else None


def answer_rate(snapshot: Snapshot) -> float | None:
    """Return the ok answers per second from the end of the first to the end of the last, without
    ramp and tail.

    None with fewer than MIN_ANSWERS of them. It is no throughput where requests are sent in waves,
    as in a closed loop.
    """
    ends = snapshot.closed[snapshot.ttft >= 0]
    if len(ends) < MIN_ANSWERS or ends.max() == ends.min():
        return None
    return float((len(ends) - 1) * 1e9 / (ends.max() - ends.min()))


def peak_output_tokens(snapshot: Snapshot) -> int:
    """Return the maximum of output tokens in any second, to a hundredth of a second."""
    return best_second(snapshot.bins)


def peak_output_rate(snapshot: Snapshot) -> float:
    """Return the output tokens per second of the best second; of a run shorter than a second, of
    the whole run.
    """
    return peak_rate(peak_output_tokens(snapshot), wall_ns(snapshot) / 1e9)


def peak_rate(best: int, duration_s: float) -> float:
    """Return the rate in the best second of a run, or in all of a shorter run; 0 where nothing was
    sent.

    Args:
        best: The count in its best second.
        duration_s: How long the run was, s.
    """
    return best / min(duration_s, 1.0) if duration_s else 0.0


def best_second(bins: Int64s) -> int:
    """Return the maximum sum of a second's worth of neighbouring bins, each of BIN_NS."""
    if not len(bins):
        return 0
    sums = np.concatenate(([0], np.cumsum(bins)))
    if len(bins) <= SECOND:
        return int(sums[-1])
    return int(np.max(sums[SECOND:] - sums[:-SECOND]))


def steady_output_rate(snapshot: Snapshot) -> float | None:
    """Return output tokens per second while the load was steady, without ramp and tail.

    The window begins when the first requests have had time to end (p99 E2EL after the first send)
    and ends at the last send. Tokens are counted when they arrived, so requests that straddle an
    edge bias nothing. None where such a window would be shorter than a second, as after a burst.
    """
    e2el = snapshot.histograms["e2el_sent"].percentile(99)
    was_sent = snapshot.sent[snapshot.sent >= 0]
    if e2el is None or not len(was_sent):
        return None
    begin = int(was_sent.min() + e2el)
    end = int(was_sent.max())
    if end - begin < MIN_STEADY_NS:
        return None
    return output_rate(snapshot, begin, end)


def output_rate(snapshot: Snapshot, begin_ns: int, end_ns: int) -> float:
    """Return the output tokens per second of a window, which has a part of the tokens of a bin
    that it cuts.
    """
    so_far = np.concatenate(([0], np.cumsum(snapshot.bins)))
    first, last = np.interp((begin_ns / BIN_NS, end_ns / BIN_NS), np.arange(len(so_far)), so_far)
    return float((last - first) * 1e9 / (end_ns - begin_ns))


def at_least_in_flight(begins: Int64s, ends: Int64s, level: int) -> tuple[int, int] | None:
    """Return the first and the last time at which `level` intervals overlap; None if they never
    do; times in ns.
    """
    times, counts = _at_once(begins, ends)
    reached = np.flatnonzero(counts >= level)
    return (int(times[reached[0]]), int(times[reached[-1] + 1])) if len(reached) else None


def peak_concurrency(snapshot: Snapshot) -> int:
    """Return the maximum of requests between sent and closed at once; a close comes before a
    send at the same time.
    """
    was_sent = snapshot.sent >= 0
    return most_at_once(snapshot.sent[was_sent], snapshot.closed[was_sent])


def most_at_once(begins: Int64s, ends: Int64s) -> int:
    """Return the maximum of intervals at once, each without its end; both arrays have the same
    shape.
    """
    return int(np.max(_at_once(begins, ends)[1], initial=0))


def most_in_each(begins: Int64s, ends: Int64s, edges: Int64s) -> Int64s:
    """Return the maximum of intervals at once between each two neighbouring edges, which ascend;
    shape (edges - 1,).
    """
    times, counts = _at_once(begins, ends)
    first = np.searchsorted(times, edges)
    before = np.concatenate(([0], counts))[first[:-1]]
    within = np.maximum.reduceat(np.append(counts, 0), first[:-1])
    most: Int64s = np.where(first[:-1] < first[1:], np.maximum(before, within), before)
    return most


def _at_once(begins: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
    """Return the times at which the number of intervals changes, ascending, and the number from
    then on.
    """
    times = np.concatenate((ends, begins))
    steps = np.concatenate((np.full(len(ends), -1), np.full(len(begins), 1)))
    # At equal times the ends, which stand first, come first.
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(steps[order])
