"""Rates as guidellm 0.5 computes them: events per second from the gaps around each event, and concurrency."""

from array import array

import numpy as np

from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.util.arrays import Floats, Int64s

MERGE_S = 1e-4  # events closer than this are merged
MIN_DURATION_S = 1e-6  # minimum duration of the last event


def merged(times: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Sort events by time; merge those within MERGE_S of the first of them, with the sum of their weights."""
    order = np.argsort(times)
    times, weights = times[order], weights[order]
    beyond: Int64s = np.searchsorted(times, times + MERGE_S, side="right")
    first, at = array("q"), 0
    while at < len(times):
        first.append(at)
        at = int(beyond[at])
    starts = np.frombuffer(first, dtype=np.int64)
    return times[starts], np.add.reduceat(weights, starts) if len(starts) else weights


def rates(times: Floats, weights: Floats) -> Distribution | None:
    """Return events per second: the weight of each event over half the time to its neighbours, weighted by that time.

    Args:
        times: The times of the events, s, shape (n,), in any order.
        weights: The weights of the events, shape (n,).

    Returns:
        None if there are fewer than two distinct times.
    """
    at, counts = merged(times, weights)
    if len(at) < 2:
        return None
    middles = (at[1:] + at[:-1]) / 2
    durations = np.concatenate(([middles[0] - at[0]], np.diff(middles), [max(at[-1] - middles[-1], MIN_DURATION_S)]))
    return Distribution(counts / durations, durations, steps=True)


def concurrency(starts: Floats, ends: Floats, begin: float, end: float) -> Distribution | None:
    """Return the number of requests in flight between two times, weighted by duration; None without requests."""
    changes = np.concatenate((np.ones(len(starts)), np.full(len(ends), -1.0)))
    at, steps = merged(np.concatenate((starts, ends)), changes)
    if not len(at):
        return None
    inside = (at >= begin) & (at <= end)
    times = np.concatenate(([begin], at[inside], [end]))
    levels = np.cumsum(np.concatenate(([steps[at < begin].sum()], steps[inside]))).clip(0)
    durations = np.diff(times).clip(0)
    return Distribution(levels, durations, steps=True) if durations.any() else None
