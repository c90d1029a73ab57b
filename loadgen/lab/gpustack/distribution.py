"""Distributions in guidellm's format: of values, of rates over a run, and of requests in flight.

A percentile is the smallest value at which the cumulative weight is reached: guidellm's definition, without
interpolation. If nothing was measured, `count` and all other numbers are 0: GPUStack's reader accepts no null.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from loadgen.lab.tools.emulate.distribution import Distribution
from loadgen.util.arrays import Floats

PERCENTILES = {
    "p001": 0.1,
    "p01": 1,
    "p05": 5,
    "p10": 10,
    "p25": 25,
    "p50": 50,
    "p75": 75,
    "p90": 90,
    "p95": 95,
    "p99": 99,
    "p999": 99.9,
}
STATISTICS = ("mean", "median", "mode", "variance", "std_dev", "min", "max")
WINDOW_S = 1.0  # the window of a rate; between neighboring events a rate is arbitrary


def distribution(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    count: int | None = None,
) -> dict[str, Any]:
    """Return the distribution of weighted values.

    Args:
        values: Shape (n,), in the unit of the result.
        weights: Shape (n,), at least 0; 1 by default.
        count: Observations; the sum of the weights by default.
    """
    found = np.asarray(values, dtype=np.float64)
    weighted = np.ones_like(found) if weights is None else np.asarray(weights, dtype=np.float64)
    of = Distribution(found[weighted > 0], weighted[weighted > 0], steps=True)
    mean, (distinct, counts) = of.mean, of.distinct
    if mean is None:
        nothing = dict.fromkeys(STATISTICS, 0.0) | {"count": 0, "total_sum": 0.0}
        return nothing | {"percentiles": dict.fromkeys(PERCENTILES, 0.0), "pdf": None}
    at = {name: of.percentile(p) for name, p in PERCENTILES.items()}
    variance = float(np.sum((distinct - mean) ** 2 * counts) / np.sum(counts))
    count = round(float(weighted.sum())) if count is None else count
    return {
        "mean": mean,
        "median": at["p50"],
        "mode": float(distinct[np.argmax(counts)]),
        "variance": variance,
        "std_dev": math.sqrt(variance),
        "min": float(distinct[0]),
        "max": float(distinct[-1]),
        "count": count,
        "total_sum": mean * count,
        "percentiles": at,
        "pdf": None,
    }


def rates(
    times_s: ArrayLike,
    amounts: ArrayLike,
    start_s: float,
    end_s: float,
) -> dict[str, Any]:
    """Return the distribution of rates per second over equal windows of at least WINDOW_S.

    The mean is the total amount divided by the length of the run.

    Args:
        times_s: The times of events, shape (n,); those before `start_s` or after `end_s` do not count.
        amounts: The amount of each event, shape (n,).
        start_s: The start of the run, seconds on any clock.
        end_s: The end of the run.
    """
    added = np.asarray(amounts, dtype=np.float64)
    if not len(added) or end_s <= start_s:
        return distribution(())
    windows = max(int((end_s - start_s) / WINDOW_S), 1)
    sums, _ = np.histogram(times_s, bins=windows, range=(start_s, end_s), weights=added)
    return distribution(sums * windows / (end_s - start_s), count=round(float(sums.sum())))


def concurrency(
    starts_s: Floats,
    ends_s: Floats,
    start_s: float,
    end_s: float,
) -> dict[str, Any]:
    """Return the distribution of the number of overlapping intervals, weighted by time.

    Args:
        starts_s: The starts of the intervals, shape (n,), not before `start_s`.
        ends_s: Their ends, shape (n,), not after `end_s`.
        start_s: The start of the run, seconds on any clock.
        end_s: The end of the run.
    """
    if not len(starts_s):
        return distribution(())
    times = np.concatenate((starts_s, ends_s))
    steps = np.repeat((1, -1), len(starts_s))
    order = np.argsort(times)  # the order of simultaneous steps does not matter: they last no time
    levels = np.concatenate(((0,), np.cumsum(steps[order])))
    durations_s = np.diff(np.concatenate(((start_s,), times[order], (end_s,))))
    return distribution(levels, durations_s, count=len(starts_s))
