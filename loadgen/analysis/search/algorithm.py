"""The search for the highest load level, a rate or a concurrency, at which a server meets all
criteria.

Levels are doubled until one fails, or halved until one does not; then the gap between the two is
bisected, in logarithms. A level counts as met only if a confidence bound shows it, so few requests
cannot meet a criterion by luck.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadgen.analysis.search.criteria import LOOKS, RatioSample


@dataclass(frozen=True, slots=True)
class Run:
    """What one run at a level shows.

    Attributes:
        samples: One for each criterion.
        in_flight: Requests in flight at the server, on average.
        failed: Whether it misses the criteria whatever the samples show: requests piled up, or the
            run was stopped early because too many had missed their limits.
        inconclusive: Why the run shows nothing about the server; None if it does. For example the
            client was the limit.
    """

    samples: Sequence[RatioSample]
    in_flight: float
    failed: bool = False
    inconclusive: str | None = None

    def met(self) -> bool | None:
        """Tell whether all criteria are met; None if the run is inconclusive or has too few
        requests to tell.
        """
        if self.inconclusive is not None:
            return None
        verdicts = {sample.met(self.in_flight) for sample in self.samples}
        if self.failed or False in verdicts:
            return False
        return None if None in verdicts else True

    def __add__(self, other: "Run") -> "Run":
        """Pool two runs that are conclusive and have not failed."""
        samples = [sample + more for sample, more in zip(self.samples, other.samples, strict=True)]
        return Run(samples, max(self.in_flight, other.in_flight))


@dataclass(frozen=True, slots=True)
class SearchRange:
    """Which levels are searched, and how finely.

    Attributes:
        resolution: The search ends when the lowest level that fails is this share above the highest
            that does not.
        min_level: The search gives up below this level.
        max_level: No level above this one is tried.
        nearest: Rounds a computed level to one that can be run.
        looks: A level that as many conclusive runs have not shown to meet the criteria fails.
    """

    resolution: float = 0.05
    min_level: float = 0.01
    max_level: float = 1e6
    nearest: Callable[[float], float] = float
    looks: int = LOOKS


class End(StrEnum):
    """Why a search ended."""

    EDGE = "edge"  # the next level fails: the result is the highest level
    FLOOR = "floor"  # no level near above it has failed: the highest level may be higher
    NONE = "none"  # no level met the criteria
    # the client, not the server, was the limit at the last level: the highest may be higher
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search.

    Attributes:
        level: The highest level that met the criteria; 0 if none did.
        fails: The lowest level that failed; infinite if none did.
        end: Why the search ended.
        tried: Levels in the order in which they were tried, and whether they met the criteria; None
            if the client was the limit, or no more runs were allowed.
    """

    level: float
    fails: float
    end: End
    tried: tuple[tuple[float, bool | None], ...]


Measure = Callable[[float], Awaitable[Run | None]]


async def find_highest_level(measure: Measure, start: float, span: SearchRange) -> SearchResult:
    """Find the highest level that meets the criteria.

    Args:
        measure: Runs a level; returns None if no more runs are allowed.
        start: The first level.
        span: Which levels are searched.
    """
    meets, fails = 0.0, math.inf
    level = min(max(span.nearest(start), span.min_level), span.max_level)
    tried: list[tuple[float, bool | None]] = []
    end = None
    while span.min_level <= level <= span.max_level:
        verdict, used = await _test_level(measure, level, span.looks)
        if used:
            tried.append((level, verdict))
        if verdict is None:
            end = End.CLIENT if used == LOOKS else None
            break
        meets, fails = (level, fails) if verdict else (meets, level)
        if meets == span.max_level:
            break
        if meets and fails < math.inf:
            level = span.nearest(math.sqrt(meets * fails))
            if fails <= meets * (1 + span.resolution) or level in (meets, fails):
                end = End.EDGE
                break
        else:
            level = (
                span.nearest(level / 2)
                if fails < math.inf
                else min(span.nearest(2 * level), span.max_level)
            )
    return SearchResult(meets, fails, end or (End.FLOOR if meets else End.NONE), tuple(tried))


async def _test_level(measure: Measure, level: float, looks: int) -> tuple[bool | None, int]:
    """Run a level up to LOOKS times and judge all its runs together.

    Returns:
        Whether the level meets the criteria, and the number of runs. A level that is not shown to
        meet them after `looks` conclusive runs fails. None if the client was the limit each time,
        or no more runs are allowed.
    """
    pooled: Run | None = None
    conclusive = 0
    for used in range(LOOKS):
        run = await measure(level)
        if run is None:
            return None, used
        if run.inconclusive is not None:
            continue
        if run.failed:
            return False, used + 1
        pooled = run if pooled is None else pooled + run
        conclusive += 1
        verdict = pooled.met()
        if verdict is not None or conclusive == looks:
            return bool(verdict), used + 1
    return None if pooled is None else False, LOOKS
