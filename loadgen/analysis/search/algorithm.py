"""The search for the highest load level, a rate or a concurrency, at which a server meets all
criteria.

Levels are doubled until one fails, or halved until one does not; then the gap between the two is
bisected, in logarithms. A level counts as met only if a confidence bound shows it, so few requests
cannot meet a criterion by luck. A miss is doubted if something disturbed its run, or if a higher
level did better: the level is run again, and no doubted miss ends a search as its edge.
"""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from operator import add

from loadgen.analysis.search.criteria import LOOKS, RatioSample

REPEATS = 2  # of a level whose miss is doubted
OUTDONE = "a higher level did better"


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
        disturbed: What makes a miss of it doubtful: the checks of the client that failed, or
            OUTDONE; None if nothing does.
    """

    samples: Sequence[RatioSample]
    in_flight: float
    failed: bool = False
    inconclusive: str | None = None
    disturbed: str | None = None

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
class Judged:
    """What all runs at a level show together.

    Attributes:
        counted: Whether each run counts. One that is inconclusive does not; a doubtful miss does
            only if there is nothing else.
        met: Whether the level meets the criteria; None: its runs do not show it.
        pooled: The runs that count, as one; None: none has samples.
        is_doubted: Whether it is not met, and all its runs are doubtful.
    """

    counted: tuple[bool, ...]
    met: bool | None
    pooled: Run | None
    is_doubted: bool

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Judged":
        """Judge the runs at a level together."""
        conclusive = [run.inconclusive is None for run in runs]
        sound = [
            counts and not (run.disturbed and run.met() is False)
            for run, counts in zip(runs, conclusive, strict=True)
        ]
        counted = tuple(sound if any(sound) else conclusive)
        counting = [run for run, counts in zip(runs, counted, strict=True) if counts]
        sampled = [run for run in counting if run.samples]
        pooled = reduce(add, sampled) if sampled else None
        failed = any(run.failed for run in counting)
        met = False if failed else pooled.met() if pooled else None
        doubtful = [
            bool(run.disturbed) for run, counts in zip(runs, conclusive, strict=True) if counts
        ]
        return cls(counted, met, pooled, met is not True and bool(doubtful) and all(doubtful))

    def is_better_than(self, other: "Judged") -> bool:
        """Tell whether these runs did certainly better: by all bounds that do not overlap."""
        if self.pooled is None or other.pooled is None:
            return self.met is True and other.met is False
        signs = set[bool]()
        for one, two in zip(self.pooled.samples, other.pooled.samples, strict=True):
            ours, theirs = one.bounds(self.pooled.in_flight), two.bounds(other.pooled.in_flight)
            if ours and theirs and (ours[1] < theirs[0] or theirs[1] < ours[0]):
                signs.add((ours[0] > theirs[1]) != one.is_mean)
        return signs == {True}


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
    # the next level was not met, in disturbed runs alone: the highest may be higher
    DISTURBED = "disturbed"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search.

    Attributes:
        level: The highest level that met the criteria; 0 if none did.
        fails: The lowest level above it that failed, in runs that nothing makes doubtful; infinite
            if none did.
        end: Why the search ended.
        tried: Levels in the order in which they were tried, and whether they met the criteria; None
            if the client was the limit, or no more runs were allowed.
    """

    level: float
    fails: float
    end: End
    tried: tuple[tuple[float, bool | None], ...]


Measure = Callable[[float], Awaitable[Run | None]]
Doubt = Callable[[float, str], None]


async def find_highest_level(
    measure: Measure,
    start: float,
    span: SearchRange,
    doubt: Doubt = lambda level, why: None,
) -> SearchResult:
    """Find the highest level that meets the criteria.

    Args:
        measure: Runs a level; returns None if no more runs are allowed.
        start: The first level.
        span: Which levels are searched.
        doubt: Told of a level whose runs so far have become doubtful, and why.
    """
    search = _Search(measure, span, doubt)
    level = min(max(span.nearest(start), span.min_level), span.max_level)
    end = None
    while span.min_level <= level <= span.max_level:
        verdict, used = await search.test(level)
        if verdict is None:
            end = End.CLIENT if used == LOOKS else None
            break
        if (outdone := search.outdone()) is not None:
            level = outdone
            continue
        meets, fails = search.meets, search.misses()
        if meets == span.max_level:
            break
        if meets and fails < math.inf:
            level = span.nearest(math.sqrt(meets * fails))
            if fails <= meets * (1 + span.resolution) or level in (meets, fails):
                if search.doubts(fails) and search.may_repeat(fails):
                    level = fails
                    continue
                end = End.DISTURBED if search.doubts(fails) else End.EDGE
                break
        elif meets:
            level = min(span.nearest(2 * meets), span.max_level)
        else:
            level = span.nearest(fails / 2)
    if end is None and search.is_all_doubted:
        end = End.DISTURBED
    meets, fails = search.meets, search.misses(doubted=False)
    return SearchResult(
        meets, fails, end or (End.FLOOR if meets else End.NONE), tuple(search.tried)
    )


class _Search:
    """What a search knows of its levels.

    Args:
        measure, span, doubt: As of `find_highest_level`.

    Attributes:
        tried: As in `SearchResult`.
    """

    def __init__(self, measure: Measure, span: SearchRange, doubt: Doubt) -> None:
        self.tried: list[tuple[float, bool | None]] = []
        self._measure, self._span, self._doubt = measure, span, doubt
        self._runs: dict[float, list[Run]] = {}
        self._verdicts: dict[float, bool] = {}
        self._repeats = Counter[float]()

    @property
    def meets(self) -> float:
        """The highest level that met the criteria; 0 if none did."""
        return max((level for level, met in self._verdicts.items() if met), default=0.0)

    def misses(self, *, doubted: bool = True) -> float:
        """Return the lowest level above it that missed them, also by doubted misses or not;
        infinite if none did.
        """
        meets = self.meets
        missed = (level for level, met in self._verdicts.items() if not met and level > meets)
        return min(
            (level for level in missed if doubted or not self.doubts(level)), default=math.inf
        )

    def doubts(self, level: float) -> bool:
        """Tell whether a level that was not met has doubtful runs alone; never where one run is
        all that a level has.
        """
        return self._span.looks > 1 and Judged.of(self._runs[level]).is_doubted

    @property
    def is_all_doubted(self) -> bool:
        """Whether no level met the criteria, and each miss is doubted."""
        return bool(self._verdicts) and all(
            not met and self.doubts(level) for level, met in self._verdicts.items()
        )

    def may_repeat(self, level: float) -> bool:
        """Tell whether a level may be run again, and count that it is."""
        if self._span.looks == 1 or self._repeats[level] == REPEATS:
            return False
        self._repeats[level] += 1
        return True

    def outdone(self) -> float | None:
        """Return a level that was missed while a higher one did better, which is to be run again,
        its runs being doubtful; None if there is none.
        """
        judged = {level: Judged.of(self._runs[level]) for level in self._verdicts}
        for level in sorted(level for level, met in self._verdicts.items() if not met):
            higher = (judged[other] for other in judged if other > level)
            better = any(other.is_better_than(judged[level]) for other in higher)
            if better and self.may_repeat(level):
                runs = self._runs[level]
                runs[:] = [replace(run, disturbed=run.disturbed or OUTDONE) for run in runs]
                self._doubt(level, OUTDONE)
                return level
        return None

    async def test(self, level: float) -> tuple[bool | None, int]:
        """Run a level up to LOOKS times, and judge all its runs together.

        Returns:
            Whether the level meets the criteria, and the number of runs. A level that is not shown
            to meet them after `looks` conclusive runs fails; one that is missed in a disturbed run
            is run again first. None if the client was the limit each time, or no more runs are
            allowed.
        """
        verdict, used = await self._looks(level)
        if used:
            self.tried.append((level, verdict))
        if verdict is not None:
            self._verdicts[level] = verdict
        return verdict, used

    async def _looks(self, level: float) -> tuple[bool | None, int]:
        runs = self._runs.setdefault(level, [])
        conclusive = 0
        for used in range(LOOKS):
            run = await self._measure(level)
            if run is None:
                return None, used
            runs.append(run)
            conclusive += run.inconclusive is None
            judged = Judged.of(runs)
            if judged.is_doubted and not self._repeats[level] and self.may_repeat(level):
                continue
            if judged.met is not None or conclusive == self._span.looks:
                return bool(judged.met), used + 1
        return False if conclusive else None, LOOKS
