"""LoadSearch: one search for the highest load that meets an SLO. The caller carries out its runs.

All runs at a level are judged together, with bounds of the values that the SLO limits.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from itertools import compress
from operator import add
from pathlib import Path
from typing import Any

from loadgen.analysis.search.algorithm import (
    Judged,
    Run,
    SearchRange,
    SearchResult,
    find_highest_level,
)
from loadgen.analysis.search.criteria import LOOKS, RatioSample, separate_criteria
from loadgen.analysis.search.levels import AXES, LevelRun, Levels, Measure
from loadgen.analysis.search.search_bounds import UNBOUNDED, SearchBounds
from loadgen.config import slo
from loadgen.config.load import AxisName
from loadgen.config.settings import RunSettings
from loadgen.core.histogram import Histogram
from loadgen.errors import BadInput, setting
from loadgen.metrics.snapshot import Snapshot
from loadgen.metrics.statistic import statistic_ms
from loadgen.report.result.series import BoundedLimit, Found, LoadLevel, Series
from loadgen.report.series import TOO_FEW
from loadgen.util.number_format import duration

FIRST_CONCURRENCY = 16
OUTCOME = {True: "met", False: "missed", None: "undecided"}


class LoadSearch:
    """One search.

    Args:
        requested: The checked settings of the search; `slo` has the limits.
        over: rate or concurrency.
        chosen: The settings that were given for this search, by name, without those of a workload:
            the first level, and the length of the runs.
        bounds: How far it goes.

    Attributes:
        data: The runs that have ended, and what follows from them. Whoever carries out a run
            appends its point.
        settings: The settings of the runs, without the limits and the length of the search.
        first_settings: Settings by which the server is found.
        outcome: The outcome; None: the search has not ended, or ended early.
    """

    def __init__(
        self,
        requested: RunSettings,
        over: AxisName,
        chosen: Mapping[str, Any],
        bounds: SearchBounds = UNBOUNDED,
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
            raise BadInput(setting.num_prompts, problem, f"give {least} or more, or leave it out")
        self._axis, self._chosen, self._bounds = AXES[over], chosen, bounds
        self.settings = requested.replace(slo=None, duration=None)
        self.first_settings = self.settings.replace(num_prompts=min_requests)
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
            start = self._chosen.get(self._axis.setting)
            if start is None or math.isinf(start):
                start = FIRST_CONCURRENCY if self._axis.name == "concurrency" else None
            if start is None:  # the throughput of a run that sends everything at once
                say(
                    f"up to {levels.runs_left} runs; the first sends {levels.min_requests} "
                    "requests at once, to choose the first rate"
                )
                try:
                    start = await levels.run_burst()
                finally:
                    report()
            say(self._plan(levels, float(start)))
            self.outcome = await find_highest_level(run_level, float(start), span, levels.doubt)
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
        return max((level.level for level in self._levels.values() if level.met), default=0.0)

    def _plan(self, levels: Levels, level: float) -> str:
        """Describe the number and the length of the runs, and why they are longer than
        --duration if they are.
        """
        level = max(self._axis.nearest(level), levels.min_level)
        count = levels.requests_at(level)
        length_s, duration_s = self._axis.length_s(level, count), self._chosen.get("duration")
        if math.isinf(length_s):
            return f"up to {levels.runs_left} runs of at least {count} requests each"
        whole = duration(levels.runs_left * length_s)
        runs = (
            f"up to {levels.runs_left} runs of {duration(length_s)} each at "
            f"{self.level_text(level)}"
        )
        plan = f"{runs}, {whole} in total; runs at lower levels are longer"
        if duration_s is None or length_s < duration_s + 1:
            return plan
        needs = max(self._criteria, key=lambda criterion: criterion.min_requests).text
        return f"--duration {duration_s:g} is too short: {needs} needs {count} requests; {plan}"

    def _report(self, level_runs: list[LevelRun], say: Callable[[str], None]) -> None:
        for number in range(self._reported, len(level_runs)):
            run, level, why = (
                level_runs[number].run,
                level_runs[number].level,
                level_runs[number].why,
            )
            met = run.met()
            why = why or (TOO_FEW if met is None else None)
            limits_met = [sample.met(run.in_flight) for sample in run.samples]
            self.data.points[number] = self.data.points[number].with_verdict(met, why, limits_met)
            if math.isfinite(level):
                at_level = [level_run for level_run in level_runs if level_run.level == level]
                self._levels[level] = judge_level(at_level, self._limits, self.data.latency_from)
            together = self._levels.get(level)
            if together is None:
                outcome = OUTCOME[met] + (f" ({why})" if why else "")
            else:
                outcome = outcome_text(together, met, why)
            say(f"{self.level_text(level)}: {outcome}")
        self._reported = len(level_runs)
        self.data.levels = [self._levels[level] for level in sorted(self._levels)]

    def _conclude(self, levels: Levels) -> None:
        outcome = self.outcome
        self.data.found = Found(
            level=self.found_level or None,
            fails=outcome.fails if outcome and math.isfinite(outcome.fails) else None,
            end=outcome.end.value if outcome else "early",
            last=outcome.tried[-1][0] if outcome else None,
        )
        self.data.notes += levels.notes


def outcome_text(level: LoadLevel, met: bool | None, why: str | None) -> str:
    """Say what a level has shown so far, as the table does, after a run of it.

    Args:
        level: All runs at the level.
        met: What the run alone shows.
        why: Why it is inconclusive, or missed the limits whatever they are.
    """
    outcome = OUTCOME[level.met]
    if level.doubted:
        return f"{outcome}, disturbed ({level.doubted})"
    if met is level.met:
        return outcome + (f" ({why})" if why else "")
    return f"{outcome}, by {f'{level.runs} runs together' if level.runs > 1 else 'another run'}"


def judge_level(
    level_runs: Sequence[LevelRun], limits: Sequence[slo.Limit], clock: str
) -> LoadLevel:
    """Judge the runs at a level together.

    Args:
        level_runs: The runs, one at least, all at one level.
        limits: Of the SLO, one for each criterion of the runs.
        clock: "due" or "sent", from which latencies are counted.
    """
    judged = Judged.of([level_run.run for level_run in level_runs])
    counted = list(compress(level_runs, judged.counted))
    pooled = judged.pooled
    failed = next((level_run for level_run in counted if level_run.run.failed), None)
    why = failed.why if failed else None if counted else level_runs[-1].why
    snapshots = [level_run.result.snapshot for level_run in counted or level_runs[-1:]]
    return LoadLevel(
        level=level_runs[0].level,
        met=judged.met,
        doubted=counted[-1].run.disturbed if judged.is_doubted else None,
        runs=len(counted),
        why=why,
        slo=[
            _bounded(limit, number, pooled, snapshots, clock) for number, limit in enumerate(limits)
        ],
    )


def _bounded(
    limit: slo.Limit, number: int, pooled: Run | None, snapshots: Sequence[Snapshot], clock: str
) -> BoundedLimit:
    sample, in_flight = (pooled.samples[number], pooled.in_flight) if pooled else (None, 0.0)
    bounds: tuple[float | None, float | None, float | None]
    rates = sample.bounds(in_flight) if sample and limit.metric == "error" else None
    if limit.metric != "error":
        bounds = _latencies(limit, sample, in_flight, snapshots, clock)
    elif sample is None or sample.value is None or rates is None:
        bounds = (None, None, None)
    else:
        bounds = (1 - sample.value, max(0.0, 1 - rates[1]), min(1.0, 1 - rates[0]))
    value, low, high = (None if bound is None or math.isinf(bound) else bound for bound in bounds)
    met = sample.met(in_flight) if sample else None
    return BoundedLimit(limit=limit.text, value=value, low=low, high=high, met=met)


def _latencies(
    limit: slo.Limit,
    sample: RatioSample | None,
    in_flight: float,
    snapshots: Sequence[Snapshot],
    clock: str,
) -> tuple[float | None, float | None, float | None]:
    """Return the value of a latency, ms, and its bounds; infinite where they lie among requests
    that failed.
    """
    name = slo.distribution(limit.metric, clock)
    failed = (
        0 if limit.metric in slo.GAPS else sum(snapshot.failures.failed for snapshot in snapshots)
    )

    def pooled(histograms: Callable[[Snapshot], dict[str, Histogram]]) -> Histogram:
        return reduce(add, (histograms(snapshot)[name] for snapshot in snapshots))

    value = statistic_ms(pooled(lambda snapshot: snapshot.histograms), limit.statistic, failed)
    if sample is not None and value is not None and sample.is_mean:
        return value, *(sample.bounds(in_flight) or (None, None))
    shares = sample.deciding_shares(in_flight) if sample is not None and value is not None else None
    if shares is None:
        return value, None, None
    least, most = shares
    low = statistic_ms(pooled(lambda snapshot: snapshot.lower), f"p{100 * max(0.0, least)}", failed)
    high = (
        statistic_ms(pooled(lambda snapshot: snapshot.upper), f"p{100 * most}", failed)
        if most <= 1
        else None
    )
    return value, low, high
