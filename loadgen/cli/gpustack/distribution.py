"""Distributions in guidellm's shape: of values, of rates over a run, and of how many requests were in flight.

A percentile is the least value at which so much of the weight is reached: guidellm's definition, which interpolates
nothing. `count` 0 says that nothing was measured: the other numbers are then 0.0, for GPUStack's reader takes no null.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from loadgen.analysis.emulate.distribution import Distribution
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
WINDOW_S = 1.0  # the least time over which a rate is taken: between neighbouring events it would be any number


def distribution(values: ArrayLike, weights: ArrayLike | None = None, count: int | None = None) -> dict[str, Any]:
    """The distribution of values, each with a weight.

    Args:
        values: Shape (n,), in the unit of the result.
        weights: Shape (n,), at least 0; by default each counts once.
        count: Observations; the sum of the weights by default.
    """
    found = np.asarray(values, dtype=np.float64)
    weighed = np.ones_like(found) if weights is None else np.asarray(weights, dtype=np.float64)
    of = Distribution(found[weighed > 0], weighed[weighed > 0], steps=True)
    mean, (distinct, counts) = of.mean, of.distinct
    if mean is None:
        nothing = dict.fromkeys(STATISTICS, 0.0) | {"count": 0, "total_sum": 0.0}
        return nothing | {"percentiles": dict.fromkeys(PERCENTILES, 0.0), "pdf": None}
    at = {name: of.percentile(p) for name, p in PERCENTILES.items()}
    variance = float(np.sum((distinct - mean) ** 2 * counts) / np.sum(counts))
    count = round(float(weighed.sum())) if count is None else count
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


def rates(times_s: ArrayLike, amounts: ArrayLike, start_s: float, end_s: float) -> dict[str, Any]:
    """How much came per second, over equal windows of the run of WINDOW_S or somewhat more.

    The mean is all that came by the length of the run.

    Args:
        times_s: When something came, shape (n,), from `start_s` to `end_s`.
        amounts: How much, shape (n,).
        start_s: When the run began, on any clock.
        end_s: When it ended.
    """
    brought = np.asarray(amounts, dtype=np.float64)
    if not len(brought) or end_s <= start_s:
        return distribution(())
    windows = max(int((end_s - start_s) / WINDOW_S), 1)
    sums, _ = np.histogram(times_s, bins=windows, range=(start_s, end_s), weights=brought)
    return distribution(sums * windows / (end_s - start_s), count=round(float(brought.sum())))


def concurrency(starts_s: Floats, ends_s: Floats, start_s: float, end_s: float) -> dict[str, Any]:
    """How many intervals overlapped, each number weighed by how long it lasted; one that ends makes room at once.

    Args:
        starts_s: When each began, shape (n,), not before `start_s`.
        ends_s: When it ended, shape (n,), not after `end_s`.
        start_s: When the run began, on any clock.
        end_s: When it ended.
    """
    if not len(starts_s):
        return distribution(())
    times = np.concatenate((starts_s, ends_s))
    steps = np.repeat((1, -1), len(starts_s))
    order = np.argsort(times)  # whatever comes first of what comes at once: it lasts no time
    levels = np.concatenate(((0,), np.cumsum(steps[order])))
    lasted = np.diff(np.concatenate(((start_s,), times[order], (end_s,))))
    return distribution(levels, lasted, count=len(starts_s))
