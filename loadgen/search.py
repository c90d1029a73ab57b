"""Search: the highest request rate at which a wanted share of the requests still meets its limits.

Rates are doubled until one fails, or halved until one does not, and the gap between the two is then halved, in
logarithms. A rate meets the limits only if a bound says so that knows how few the requests were, and that those which
shared the server share their fate: Wilson's lower bound (J. Am. Stat. Assoc. 22, 1927) for as many requests as would
tell the same if they were independent. How many these are is told by a bootstrap of blocks (Kuensch, Ann. Stat. 17,
1989).
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special

RESAMPLES = 400
AGAIN = 3  # runs at a rate of which the first does not tell


@dataclass(frozen=True, slots=True)
class Run:
    """One run at one rate.

    Attributes:
        good: Whether each request met its limits, in the order in which they were due; one that failed did not.
        in_flight: How many requests the server had at once, on average.
        overloaded: Whether requests piled up; the run may then have been stopped early.
    """

    good: Sequence[bool]
    in_flight: float
    overloaded: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """What a rate has to meet, and how long it is looked for.

    Attributes:
        attainment: The share of requests that must meet their limits.
        confidence: That they do, one-sided.
        resolution: The search ends when the lowest rate that fails is this share above the highest that does not.
        least: Requests/s below which it is given up.
        most: Requests/s above which nothing is tried.
        runs: The most there may be.
    """

    attainment: float = 0.99
    confidence: float = 0.95
    resolution: float = 0.05
    least: float = 0.01
    most: float = 1e6
    runs: int = 16


class End(StrEnum):
    """Why a search ended."""

    EDGE = "edge"  # the next rate fails: the highest was seen
    FLOOR = "floor"  # nothing failed as near above: the highest may be higher
    NONE = "none"  # no rate met the limits


@dataclass(frozen=True, slots=True)
class Found:
    """Where a search ended.

    Attributes:
        rate: The highest in requests/s that met the limits; 0 if none did.
        fails: The lowest that did not; infinite if none failed.
        end: What that means.
        tried: Rates in the order in which they were tried, and whether they met the limits.
    """

    rate: float
    fails: float
    end: End
    tried: tuple[tuple[float, bool], ...]


async def highest_rate(measure: Callable[[float], Awaitable[Run]], start: float, goal: Goal) -> Found:
    """Look for it.

    Args:
        measure: Carries out a run at so many requests/s.
        start: The rate to begin with.
        goal: What it has to meet.
    """
    meets, fails, rate = 0.0, math.inf, min(start, goal.most)
    tried: list[tuple[float, bool]] = []
    left = goal.runs
    while left and goal.least <= rate <= goal.most:
        verdict, used = await _judged(measure, rate, goal, left)
        left -= used
        tried.append((rate, verdict))
        meets, fails = (rate, fails) if verdict else (meets, rate)
        if fails <= meets * (1 + goal.resolution) or meets == goal.most:
            break
        rate = min(2 * rate, goal.most) if fails == math.inf else math.sqrt(meets * fails) if meets else rate / 2
    seen = fails <= meets * (1 + goal.resolution)
    return Found(meets, fails, End.EDGE if seen else End.FLOOR if meets else End.NONE, tuple(tried))


async def _judged(measure: Callable[[float], Awaitable[Run]], rate: float, goal: Goal, most: int) -> tuple[bool, int]:
    """Whether a rate is shown to meet the limits, and the runs that took: one, or a few that are taken together."""
    good: list[bool] = []
    in_flight = 0.0
    for used in range(1, min(AGAIN, most) + 1):
        run = await measure(rate)
        if run.overloaded or not run.good:
            return False, used
        good += run.good
        in_flight = max(in_flight, run.in_flight)
        low, high = attained(good, in_flight, goal.confidence)
        if low >= goal.attainment or high < goal.attainment:
            break
    return low >= goal.attainment, used


def attained(good: Sequence[bool], in_flight: float, confidence: float) -> tuple[float, float]:
    """Between which shares the share of good requests lies; each bound holds with `confidence`.

    Args:
        good: In the order in which they were due, one at least.
        in_flight: How many are served at once.
        confidence: Of each bound.
    """
    values = np.asarray(good, dtype=float)
    share, count = float(values.mean()), len(values)
    told = count / _inflation(values, in_flight)
    z = float(special.ndtri(confidence))
    middle = (share + z * z / (2 * told)) / (1 + z * z / told)
    half = z / (1 + z * z / told) * math.sqrt(share * (1 - share) / told + z * z / (4 * told * told))
    return middle - half, middle + half


def _inflation(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", in_flight: float) -> float:
    """The variance of the mean over what it would be if the values were independent; 1 where that is not more.

    Blocks are twice as long as there are requests in flight, and no shorter than the cube root of the run.
    """
    count, share = len(values), float(values.mean())
    independent = share * (1 - share) / count
    if not independent:
        return 1.0
    length = min(count, math.ceil(max(2 * in_flight, count ** (1 / 3))))
    sums = np.convolve(np.concatenate((values, values[: length - 1])), np.ones(length), "valid")  # the run as a circle
    drawn = np.random.default_rng(0).integers(count, size=(RESAMPLES, math.ceil(count / length)))
    means = sums[drawn].sum(axis=1) / (drawn.shape[1] * length)
    return max(1.0, float(means.var()) / independent)
