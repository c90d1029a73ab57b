"""Rates of guidellm 0.5: events per second from the gaps around each event, and concurrency from starts and ends."""

from array import array

import numpy as np

from loadgen.analysis.emulate.distribution import Distribution
from loadgen.util.arrays import Floats, Int64s

APART_S = 1e-4  # events closer than this are one
LEAST_S = 1e-6  # the shortest time that the last event is given


def merged(times: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Events in order of time; those within `APART_S` of the first of them are one, with the sum of their weights."""
    order = np.argsort(times)
    times, weights = times[order], weights[order]
    beyond: Int64s = np.searchsorted(times, times + APART_S, side="right")
    first, at = array("q"), 0
    while at < len(times):
        first.append(at)
        at = int(beyond[at])
    starts = np.frombuffer(first, dtype=np.int64)
    return times[starts], np.add.reduceat(weights, starts) if len(starts) else weights


def rates(times: Floats, weights: Floats) -> Distribution | None:
    """Events per second: the weight of each event over half the time to its neighbours, which weighs that rate.

    Args:
        times: When they happened, s, shape (n,), in any order.
        weights: How much each counts, shape (n,).

    Returns:
        None where there are no two moments.
    """
    at, counts = merged(times, weights)
    if len(at) < 2:
        return None
    middles = (at[1:] + at[:-1]) / 2
    durations = np.concatenate(([middles[0] - at[0]], np.diff(middles), [max(at[-1] - middles[-1], LEAST_S)]))
    return Distribution(counts / durations, durations, steps=True)


def concurrency(starts: Floats, ends: Floats, begin: float, end: float) -> Distribution | None:
    """How many requests were under way between two moments, weighted by how long; None where there were none."""
    changes = np.concatenate((np.ones(len(starts)), np.full(len(ends), -1.0)))
    at, steps = merged(np.concatenate((starts, ends)), changes)
    if not len(at):
        return None
    inside = (at >= begin) & (at <= end)
    times = np.concatenate(([begin], at[inside], [end]))
    levels = np.cumsum(np.concatenate(([steps[at < begin].sum()], steps[inside]))).clip(0)
    durations = np.diff(times).clip(0)
    return Distribution(levels, durations, steps=True) if durations.any() else None
