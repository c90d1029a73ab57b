"""LoadSearch: one search for the highest load that meets an SLO. The caller carries out its runs."""

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from loadgen.analysis.search.algorithm import Run, SearchRange, SearchResult, find_highest_level
from loadgen.analysis.search.criteria import separate_criteria
from loadgen.analysis.search.level_verdict import judge_level
from loadgen.analysis.search.levels import AXES, LevelRun, Levels, Measure
from loadgen.analysis.search.ratio_sample import LOOKS
from loadgen.analysis.search.search_bounds import UNBOUNDED, SearchBounds
from loadgen.config import slo
from loadgen.config.load import AxisName
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.report.result.series import Found, LoadLevel, Series
from loadgen.report.series import TOO_FEW
from loadgen.util.number_format import duration

FIRST_CONCURRENCY = 16
OUTCOME = {True: "met", False: "missed", None: "not confirmed"}


class LoadSearch:
    """One search.

    Args:
        requested: The checked settings of the search; `slo` has the limits.
        over: rate or concurrency.
        chosen: The settings that were given for this search, by name, without those of a workload: the first level,
            and the length of the runs.
        bounds: How far it goes.

    Attributes:
        data: The runs that have ended, and what follows from them. Whoever carries out a run appends its point.
        settings: The settings of the runs, without the limits and the length of the search.
        first_settings: Settings by which the server is found.
        outcome: The outcome; None: the search has not ended, or ended early.
    """

    def __init__(
        self, requested: RunSettings, over: AxisName, chosen: Mapping[str, Any], bounds: SearchBounds = UNBOUNDED
    ) -> None:
        assert requested.slo is not None
        self._criteria = separate_criteria(requested.slo)
        self._limits = slo.required_limits(requested.slo)
        self._levels: dict[float, LoadLevel] = {}
        min_requests = max(criterion.min_requests for criterion in self._criteria)
        # If all requests meet a limit, half of `min_requests` show it.
        least = math.ceil(min_requests / 2 / LOOKS)
        if (count := chosen.get("num_prompts")) is not None and count < least:
            problem = f"{LOOKS} runs of {count} requests are too few to decide {requested.slo}"
            raise BadInput("--num-prompts", problem, f"give {least} or more, or leave it out")
        self._axis, self._chosen, self._bounds = AXES[over], chosen, bounds
        # the settings of the runs, without the limits and the length of the search
        self.settings = requested.replace(slo=None, duration=None)
        self.first_settings = self.settings.replace(num_prompts=min_requests)
        # the runs that have ended, and what follows from them. Whoever carries out a run appends its point
        self.data = Series(
            kind="search",
            over=over,
            slo=",".join(criterion.text for criterion in self._criteria),
            latency_from=requested.latency_from,
        )
        self.outcome: SearchResult | None = None
        self._reported = 0

    async def execute(
        self,
        settings: RunSettings,
        measure: Measure,
        records: Callable[[str], AbstractContextManager[Path]],
        say: Callable[[str], None] = lambda text: None,
        on_level: Callable[[], None] = lambda: None,
    ) -> None:
        """Carry out the runs of the search, and write what follows from them into `data`.

        Args:
            settings: Those of the search, as they are for the server.
            measure: Carries out a run, as for `Levels`, and appends its point to `data`.
            records: Where the records of a run go, as for `Levels`.
            say: Called with a line for people about the plan, and about each run that has ended.
            on_level: Called after each run, when `data` is up to date.

        Raises:
            InconclusiveRun: A run shows nothing about the server.
        """
        requests = self._chosen.get("num_prompts")
        levels = Levels(
            measure,
            settings,
            self._criteria,
            records,
            name="search",
            axis=self._axis,
            length_s=self._chosen.get("duration") or (0.0 if requests else self._bounds.run_s),
            min_requests=requests,
            bounds=self._bounds,
        )

        def report() -> None:
            self._report(levels.runs, say)
            on_level()

        async def run_level(level: float) -> Run | None:
            try:
                return await levels.run_level(level)
            finally:
                report()

        try:
            span = SearchRange(
                resolution=self._bounds.resolution,
                min_level=self._bounds.min_level or levels.min_level,
                max_level=self._bounds.max_level or self._axis.max_level,
                nearest=self._axis.nearest,
                looks=self._bounds.looks,
            )
            start = self._given_start()
            if start is None:
                say(
                    f"up to {levels.runs_left} runs; "
                    f"the first sends {levels.min_requests} requests at once, to choose the first rate"
                )
                try:
                    start = await levels.run_burst()
                finally:
                    report()
            say(self._plan(levels, start))
            self.outcome = await find_highest_level(run_level, start, span)
        finally:
            self._conclude(levels)

    def level_of(self, settings: RunSettings) -> float:
        """Return the level of a run with these settings."""
        level: float = getattr(settings, self._axis.setting)
        return level

    def level_text(self, level: float) -> str:
        """Write a level with its unit."""
        return f"{level:g} {self._axis.unit}" if math.isfinite(level) else "all requests at once"

    @property
    def found_level(self) -> float:
        """The highest level that met the limits, so far; 0: none."""
        if self.outcome is not None:
            return self.outcome.level
        return max((each.level for each in self._levels.values() if each.met), default=0.0)

    def _given_start(self) -> float | None:
        """Return the first level: the given one; None: the throughput of a run that sends everything at once."""
        given = self._chosen.get(self._axis.setting)
        if given is not None and math.isfinite(given):
            return float(given)
        return FIRST_CONCURRENCY if self._axis.name == "concurrency" else None

    def _plan(self, levels: Levels, level: float) -> str:
        """Describe the number and the length of the runs, and why they are longer than --duration if they are."""
        level = max(self._axis.nearest(level), levels.min_level)
        count = levels.requests_at(level)
        length_s, duration_s = self._axis.length_s(level, count), self._chosen.get("duration")
        if math.isinf(length_s):
            return f"up to {levels.runs_left} runs of at least {count} requests each"
        whole = duration(levels.runs_left * length_s)
        each = f"up to {levels.runs_left} runs of {duration(length_s)} each at {self.level_text(level)}"
        plan = f"{each}, {whole} in total; runs at lower levels are longer"
        if duration_s is None or length_s < duration_s + 1:
            return plan
        needs = max(self._criteria, key=lambda criterion: criterion.min_requests).text
        return f"--duration {duration_s:g} is too short: {needs} needs {count} requests; {plan}"

    def _report(self, level_runs: list[LevelRun], say: Callable[[str], None]) -> None:
        for number in range(self._reported, len(level_runs)):
            run, level, why = level_runs[number].run, level_runs[number].level, level_runs[number].why
            met = run.met()
            why = why or (TOO_FEW if met is None else None)
            limits_met = [sample.met(run.in_flight) for sample in run.samples]
            self.data.points[number] = self.data.points[number].with_verdict(met, why, limits_met)
            if math.isfinite(level):
                at_level = [each for each in level_runs if each.level == level]
                self._levels[level] = judge_level(at_level, self._limits, self.data.latency_from)
            say(f"{self.level_text(level)}: {_outcome(met, why, self._levels.get(level))}")
        self._reported = len(level_runs)
        self.data.levels = [self._levels[level] for level in sorted(self._levels)]

    def _conclude(self, levels: Levels) -> None:
        found = self.outcome
        self.data.found = Found(
            level=self.found_level or None,
            fails=found.fails if found and math.isfinite(found.fails) else None,
            end=found.end.value if found else "early",
            last=found.tried[-1][0] if found else None,
        )
        self.data.notes += levels.notes


def _outcome(met: bool | None, why: str | None, level: LoadLevel | None) -> str:
    """Say how a run ended, or how all runs at its level together did if it alone does not show it."""
    if met is None and level is not None and level.met is not None:
        return f"{OUTCOME[level.met]}, by {level.runs} runs together"
    return OUTCOME[met] + (f" ({why})" if why else "")
