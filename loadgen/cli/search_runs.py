"""Searching: the runs of `loadgen search`, one after another, and what they come to."""

import contextlib
import dataclasses
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.analysis.search.algorithm import AGAIN, End, Found, Goal, Run, highest
from loadgen.analysis.search.criteria import of_each
from loadgen.analysis.search.levels import AXES, RUN_S, Levels, Point, Stop
from loadgen.cli import exit_codes
from loadgen.cli.journal import journal
from loadgen.cli.run_series import Series, differences, numbered
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.report.result.series import Found as SeriesFound
from loadgen.util import scratch_dir
from loadgen.util.number_format import duration

if TYPE_CHECKING:
    from loadgen.report.result.series import Axis as SeriesAxis
    from loadgen.runner.run_result import Result
    from loadgen.runner.server import Server

FIRST_CONCURRENCY = 16
SAID = {True: "met", False: "missed", None: "neither met nor missed"}


class Search:
    """One search.

    Args:
        asked: The settings of the command, checked.
        over: rate or concurrency.
        chosen: Those that are given, other than by a workload: where it begins, and how long runs are.
        plot: Where a picture goes.
    """

    def __init__(self, asked: RunSettings, over: "SeriesAxis", chosen: dict[str, Any], plot: str | None) -> None:
        assert asked.slo is not None
        self._demands = of_each(asked.slo)
        self._enough = max(demand.enough for demand in self._demands)
        least = math.ceil(self._enough / 2 / AGAIN)  # half of what is enough shows it, if all of them are good
        if (count := chosen.get("num_prompts")) is not None and count < least:
            problem = f"{AGAIN} runs of {count} requests cannot show {asked.slo}"
            raise BadInput("--num-prompts", problem, f"give {least} or more, or leave it out")
        if asked.records and numbered(asked, 1).records == asked.records:  # a device
            raise BadInput("--records", f"{asked.records} keeps nothing, and a search reads its records", "name a file")
        self._asked, self._axis, self._chosen = asked.replace(slo=None, duration=None), AXES[over], chosen
        self._series = Series("search", over, asked, ",".join(demand.text for demand in self._demands), plot)
        self._told = 0

    def carried_out(self) -> int:
        """Carry it out; returns the exit code."""
        return self._series.carried_out(self._measure, self._asked.replace(num_prompts=self._enough))

    async def _measure(self, server: "Server") -> None:
        async def measure(settings: RunSettings, name: str, stop: Stop) -> "Result":
            own = settings.replace(**differences(self._asked, self._numbered()) | {"records": settings.records})
            asked = self._asked.replace(**differences(server.settings, own))
            level = getattr(own, self._axis.setting)
            title = f"run {len(self._series.points) + 1}, {self._named(level)}"
            of_run = dataclasses.replace(server, settings=own)
            return await self._series.run(of_run, asked, level, title=title, stop=stop, show=_nothing)

        requests = self._chosen.get("num_prompts")
        levels = Levels(
            measure,
            server.settings,
            self._demands,
            self._records,
            name="search",
            axis=self._axis,
            length_s=self._chosen.get("duration") or (0.0 if requests else RUN_S),
            enough=requests,
        )

        async def at(level: float) -> Run | None:
            try:
                return await levels.at(level)
            finally:
                self._tell(levels.points)

        found = None
        try:
            goal = Goal(least=levels.least, most=self._axis.most, nearest=self._axis.nearest)
            start = await self._start(levels)
            self._say(self._plan(levels, start))
            found = await highest(at, start, goal)
        finally:
            self._conclude(levels, found)

    async def _start(self, levels: "Levels") -> float:
        """The level to begin with: what is given, or what shows itself."""
        given = self._chosen.get(self._axis.setting)
        if given is not None and math.isfinite(given):
            return float(given)
        if self._axis.name == "concurrency":
            return FIRST_CONCURRENCY
        self._say(f"up to {levels.left} runs; the first sends {levels.enough} requests at once, to see where to begin")
        try:
            return await levels.at_once()
        finally:
            self._tell(levels.points)

    def _plan(self, levels: Levels, level: float) -> str:
        """How many runs there may be, how long each takes, and all of them, and why longer than was asked."""
        level = max(self._axis.nearest(level), levels.least)
        count = levels.requests_at(level)
        length_s, asked_s = self._axis.length_s(level, count), self._chosen.get("duration")
        if math.isinf(length_s):
            return f"up to {levels.left} runs, each of {count} requests or more"
        whole = duration(levels.left * length_s)
        each = f"up to {levels.left} runs, each of {duration(length_s)} at {self._named(level)}"
        plan = f"{each}: {whole} in all, longer at lower levels"
        if asked_s is None or length_s < asked_s + 1:
            return plan
        needs = max(self._demands, key=lambda demand: demand.enough).text
        return f"--duration {asked_s:g} is too short for {needs}, which takes {count} requests; {plan}"

    def _numbered(self) -> RunSettings:
        """The settings with the files of the next run."""
        return numbered(self._asked, len(self._series.points) + 1)

    @contextlib.contextmanager
    def _records(self, name: str) -> Iterator[Path]:
        """Where the next run leaves its records: where the user wants them, or until they have been judged."""
        if self._asked.records:
            yield Path(str(self._numbered().records))
            return
        with journal(wanted=True) as kept, scratch_dir.folder() as folder:
            yield kept.path or folder / name
            kept.needed = False

    def _tell(self, points: list[Point]) -> None:
        """Say what has been found since the last time, and keep it with the series."""
        for row, point in list(zip(self._series.points, points, strict=False))[self._told :]:
            run = point.run
            met = run.met()
            why = point.why or ("too few requests to tell" if met is None else None)
            each = [one.met(run.in_flight) for one in run.shown]
            self._series.points[self._told] = row.with_demands(met, why, each)
            self._told += 1
            self._say(f"{self._named(point.level)}: {SAID[met]}" + (f" ({why})" if why else ""))
        self._series.save_so_far()

    def _conclude(self, levels: Levels, found: Found | None) -> None:
        """Say in the series what the search came to; None: it ended early."""
        met = [point.level for point in levels.points if point.run.met()]
        level, fails = (found.level, found.fails) if found else (max(met, default=0.0), math.inf)
        self._series.data.found = SeriesFound(
            level=level or None,
            fails=fails if math.isfinite(fails) else None,
            end=found.end.value if found else "early",
            last=found.tried[-1][0] if found else None,
        )
        self._series.data.notes += levels.notes
        own = [exit_codes.SLO_MISSED] if found and found.end is End.NONE else []
        if found is None or found.end is End.CLIENT:
            own.append(exit_codes.ERRORS if exit_codes.ERRORS in self._series.codes else exit_codes.INVALID)
        rows = [row for row in self._series.points if level and row.level == level]
        if self._asked.strict and any(row.verdict == "SUSPECT" for row in rows):
            own.append(exit_codes.SUSPECT)
        # Of the others it is no matter what they deserve: at a level that is too high requests may well fail.
        of_levels = (exit_codes.SUSPECT, exit_codes.ERRORS)
        self._series.codes[:] = [code for code in self._series.codes if code not in of_levels] + own

    def _say(self, text: str) -> None:
        if not self._asked.quiet:
            print(f"loadgen: {text}", file=sys.stderr, flush=True)

    def _named(self, level: float) -> str:
        return f"{level:g} {self._axis.unit}" if math.isfinite(level) else "all requests at once"


def _nothing(settings: RunSettings, result: "Result", saved: list[str]) -> None:
    """A run of a search has a line in its table, and no report."""
