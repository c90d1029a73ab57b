"""Search: the highest level of load, a rate or a concurrency, at which a server still meets what is demanded of it.

Levels are doubled until one fails, or halved until one does not, and the gap between the two is then halved, in
logarithms. A level meets a demand only if a bound says so that knows how few the requests were
(`loadgen.stats.ratio_interval`).
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

import numpy as np

from loadgen.stats import block_bootstrap
from loadgen.stats.ratio_interval import of_mean, of_share
from loadgen.util.arrays import Floats

AGAIN = 3  # runs at a level of which the first does not tell
# That a demand is met holds one-sided with 95 % over AGAIN looks at a level: at each the bound is the normal quantile
# 1.992 (Pocock, Biometrika 64, 1977), or Student's at the same level.
OF_A_LOOK = NormalDist().cdf(1.992)


@dataclass(frozen=True, slots=True)
class Shown:
    """What the requests of a run show of one demand, in the order in which they were due.

    Attributes:
        part: Of each request, how much of it is good; or, of a mean, the sum of its values.
        of: Of how much; of a mean, how many these are. 0 for a request that does not count.
        wanted: The least share that must be good; of a mean, the most that it may be.
        is_mean: Which of the two it is.
    """

    part: Floats
    of: Floats
    wanted: float
    is_mean: bool = False

    def __add__(self, other: "Shown") -> "Shown":
        part, of = np.concatenate((self.part, other.part)), np.concatenate((self.of, other.of))
        return Shown(part, of, self.wanted, self.is_mean)

    @property
    def value(self) -> float | None:
        """The share, or the mean; None where nothing counts."""
        return float(self.part.sum() / self.of.sum()) if self.of.any() else None

    def met(self, in_flight: float) -> bool | None:
        """Whether the demand is met; None where the requests are too few to tell."""
        if not self.of.any():
            return None
        rest = self.part - self.part.sum() / self.of.sum() * self.of
        length = block_bootstrap.long_enough(len(rest), in_flight, rest)
        low, high = (of_mean if self.is_mean else of_share)(self.part, self.of, length, OF_A_LOOK)
        if self.is_mean:
            return True if high <= self.wanted else False if low > self.wanted else None
        return True if low >= self.wanted else False if high < self.wanted else None


@dataclass(frozen=True, slots=True)
class Run:
    """One run at one level.

    Attributes:
        shown: What it shows of each demand.
        in_flight: How many requests the server had at once, on average.
        failed: Whether nothing that it shows could make it meet the demands: requests piled up, or it was stopped early
            because so many had missed their limits.
        untold: Why it says nothing of the server, if so: the client was the limit, it was too short, or it is not to
            be believed.
    """

    shown: Sequence[Shown]
    in_flight: float
    failed: bool = False
    untold: str | None = None

    def met(self) -> bool | None:
        """Whether all demands are met; None where it says nothing, or the requests are too few to tell."""
        if self.untold is not None:
            return None
        verdicts = {each.met(self.in_flight) for each in self.shown}
        if self.failed or False in verdicts:
            return False
        return None if None in verdicts else True

    def __add__(self, other: "Run") -> "Run":
        """Both taken together, of which each says something and neither failed."""
        shown = [one + more for one, more in zip(self.shown, other.shown, strict=True)]
        return Run(shown, max(self.in_flight, other.in_flight))


@dataclass(frozen=True, slots=True)
class Goal:
    """Between which levels one is looked for, and how finely.

    Attributes:
        resolution: The search ends when the lowest level that fails is this share above the highest that does not.
        least: The level below which it is given up.
        most: The level above which nothing is tried.
        nearest: The nearest level that can be tried, to one that was computed.
    """

    resolution: float = 0.05
    least: float = 0.01
    most: float = 1e6
    nearest: Callable[[float], float] = float


class End(StrEnum):
    """Why a search ended."""

    EDGE = "edge"  # the next level fails: the highest was seen
    FLOOR = "floor"  # nothing failed as near above: the highest may be higher
    NONE = "none"  # no level met the demands
    CLIENT = "client"  # the client, not the server, was the limit at the last level: the highest may be higher


@dataclass(frozen=True, slots=True)
class Found:
    """Where a search ended.

    Attributes:
        level: The highest that met the demands; 0 if none did.
        fails: The lowest that did not; infinite if none failed.
        end: What that means.
        tried: Levels in the order in which they were tried, and whether they met the demands; None: the client was the
            limit, or the runs were used up.
    """

    level: float
    fails: float
    end: End
    tried: tuple[tuple[float, bool | None], ...]


Measure = Callable[[float], Awaitable[Run | None]]


async def highest(measure: Measure, start: float, goal: Goal) -> Found:
    """Look for it.

    Args:
        measure: Has a level measured; None where there may be no more runs.
        start: The level to begin with.
        goal: Where it is looked for, and how finely.
    """
    meets, fails, level = 0.0, math.inf, min(max(goal.nearest(start), goal.least), goal.most)
    tried: list[tuple[float, bool | None]] = []
    end = None
    while goal.least <= level <= goal.most:
        verdict, used = await _judged(measure, level)
        if used:
            tried.append((level, verdict))
        if verdict is None:
            end = End.CLIENT if used == AGAIN else None
            break
        meets, fails = (level, fails) if verdict else (meets, level)
        if meets == goal.most:
            break
        if meets and fails < math.inf:
            level = goal.nearest(math.sqrt(meets * fails))
            if fails <= meets * (1 + goal.resolution) or level in (meets, fails):
                end = End.EDGE
                break
        else:
            level = goal.nearest(level / 2) if fails < math.inf else min(goal.nearest(2 * level), goal.most)
    return Found(meets, fails, end or (End.FLOOR if meets else End.NONE), tuple(tried))


async def _judged(measure: Measure, level: float) -> tuple[bool | None, int]:
    """Whether a level is shown to meet the demands, and how often it was measured: once, or a few times together.

    What they do not show is not met. None if the client was the limit each time, or there may be no more runs.
    """
    whole: Run | None = None
    for used in range(AGAIN):
        run = await measure(level)
        if run is None:
            return None, used
        if run.untold is not None:
            continue
        if run.failed:
            return False, used + 1
        whole = run if whole is None else whole + run
        if (verdict := whole.met()) is not None:
            return verdict, used + 1
    return None if whole is None else False, AGAIN
