"""The runs of `loadgen search`, and the level of load that they lead to."""

import contextlib
import dataclasses
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.analysis.search.algorithm import End, Run, SearchRange, SearchResult, find_highest_level
from loadgen.analysis.search.criteria import separate_criteria
from loadgen.analysis.search.early_stop import StopRule
from loadgen.analysis.search.level_verdict import judge_level
from loadgen.analysis.search.levels import AXES, RUN_S, LevelRun, Levels
from loadgen.analysis.search.ratio_sample import LOOKS
from loadgen.cli import exit_codes
from loadgen.cli.runs.journal import journal
from loadgen.cli.runs.run_series import SeriesRunner, differences, with_numbered_files
from loadgen.config import slo
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.report.result.series import Found, LoadLevel
from loadgen.report.series import TOO_FEW
from loadgen.util import scratch_dir
from loadgen.util.number_format import duration

if TYPE_CHECKING:
    from loadgen.report.result.series import AxisName
    from loadgen.runner.run_result import Result
    from loadgen.runner.server import Server

FIRST_CONCURRENCY = 16
OUTCOME = {True: "met", False: "missed", None: "not confirmed"}


class LoadSearch:
    """One search for the highest load that meets the limits of --slo.

    Args:
        requested: The checked settings of the command.
        over: rate or concurrency.
        chosen: The settings from flags and the config file, without the workload's: the first level, and the length
            of the runs.
        plot: The path of the chart, or None.
    """

    def __init__(self, requested: RunSettings, over: "AxisName", chosen: dict[str, Any], plot: str | None) -> None:
        assert requested.slo is not None
        self._criteria = separate_criteria(requested.slo)
        self._limits = slo.required_limits(requested.slo)
        self._levels: dict[float, LoadLevel] = {}
        self._min_requests = max(criterion.min_requests for criterion in self._criteria)
        # If all requests meet a limit, half of `min_requests` show it.
        least = math.ceil(self._min_requests / 2 / LOOKS)
        if (count := chosen.get("num_prompts")) is not None and count < least:
            problem = f"{LOOKS} runs of {count} requests are too few to decide {requested.slo}"
            raise BadInput("--num-prompts", problem, f"give {least} or more, or leave it out")
        if requested.records and with_numbered_files(requested, 1).records == requested.records:  # a device
            raise BadInput(
                "--records", f"{requested.records} is a device, and a search reads its records again", "name a file"
            )
        self._requested, self._axis, self._chosen = requested.replace(slo=None, duration=None), AXES[over], chosen
        self._series = SeriesRunner(
            "search", over, requested, ",".join(criterion.text for criterion in self._criteria), plot
        )
        self._reported = 0

    def execute(self) -> int:
        """Execute the search; returns the exit code."""
        return self._series.execute(self._measure, self._requested.replace(num_prompts=self._min_requests))

    async def _measure(self, server: "Server") -> None:
        async def measure(settings: RunSettings, name: str, stop: StopRule) -> "Result":
            own = settings.replace(
                **differences(self._requested, self._with_next_files()) | {"records": settings.records}
            )
            requested = self._requested.replace(**differences(server.settings, own))
            level = getattr(own, self._axis.setting)
            title = f"run {len(self._series.points) + 1}, {self._level_text(level)}"
            run_server = dataclasses.replace(server, settings=own)
            return await self._series.run(run_server, requested, level, title=title, stop=stop, show=_print_no_report)

        requests = self._chosen.get("num_prompts")
        levels = Levels(
            measure,
            server.settings,
            self._criteria,
            self._records,
            name="search",
            axis=self._axis,
            length_s=self._chosen.get("duration") or (0.0 if requests else RUN_S),
            min_requests=requests,
        )

        async def run_level(level: float) -> Run | None:
            try:
                return await levels.run_level(level)
            finally:
                self._report(levels.runs)

        found = None
        try:
            span = SearchRange(min_level=levels.min_level, max_level=self._axis.max_level, nearest=self._axis.nearest)
            start = await self._start(levels)
            self._say(self._plan(levels, start))
            found = await find_highest_level(run_level, start, span)
        finally:
            self._conclude(levels, found)

    async def _start(self, levels: "Levels") -> float:
        """Return the first level: the given one, or the throughput of a first run that sends everything at once."""
        given = self._chosen.get(self._axis.setting)
        if given is not None and math.isfinite(given):
            return float(given)
        if self._axis.name == "concurrency":
            return FIRST_CONCURRENCY
        self._say(
            f"up to {levels.runs_left} runs; "
            f"the first sends {levels.min_requests} requests at once, to choose the first rate"
        )
        try:
            return await levels.run_burst()
        finally:
            self._report(levels.runs)

    def _plan(self, levels: Levels, level: float) -> str:
        """Describe the number and the length of the runs, and why they are longer than --duration if they are."""
        level = max(self._axis.nearest(level), levels.min_level)
        count = levels.requests_at(level)
        length_s, duration_s = self._axis.length_s(level, count), self._chosen.get("duration")
        if math.isinf(length_s):
            return f"up to {levels.runs_left} runs of at least {count} requests each"
        whole = duration(levels.runs_left * length_s)
        each = f"up to {levels.runs_left} runs of {duration(length_s)} each at {self._level_text(level)}"
        plan = f"{each}, {whole} in total; runs at lower levels are longer"
        if duration_s is None or length_s < duration_s + 1:
            return plan
        needs = max(self._criteria, key=lambda criterion: criterion.min_requests).text
        return f"--duration {duration_s:g} is too short: {needs} needs {count} requests; {plan}"

    def _with_next_files(self) -> RunSettings:
        """Return the settings with the file names of the next run."""
        return with_numbered_files(self._requested, len(self._series.points) + 1)

    @contextlib.contextmanager
    def _records(self, name: str) -> Iterator[Path]:
        """Yield the path of the next run's records: the user's file, or one that is removed once they are judged."""
        if self._requested.records:
            yield Path(str(self._with_next_files().records))
            return
        with journal(wanted=True) as crash_journal, scratch_dir.scratch_folder() as folder:
            yield crash_journal.path or folder / name
            crash_journal.needed = False

    def _report(self, level_runs: list[LevelRun]) -> None:
        """Print the outcome of the runs that have ended since the last call, and keep it in the series."""
        for number in range(self._reported, len(level_runs)):
            run, level, why = level_runs[number].run, level_runs[number].level, level_runs[number].why
            met = run.met()
            why = why or (TOO_FEW if met is None else None)
            limits_met = [sample.met(run.in_flight) for sample in run.samples]
            self._series.points[number] = self._series.points[number].with_verdict(met, why, limits_met)
            if math.isfinite(level):
                at_level = [each for each in level_runs if each.level == level]
                self._levels[level] = judge_level(at_level, self._limits, self._series.data.latency_from)
            self._say(f"{self._level_text(level)}: {_outcome(met, why, self._levels.get(level))}")
        self._reported = len(level_runs)
        self._series.data.levels = [self._levels[level] for level in sorted(self._levels)]
        self._series.save_so_far()

    def _conclude(self, levels: Levels, found: SearchResult | None) -> None:
        """Write the outcome of the search into the series.

        Args:
            levels: The runs.
            found: The outcome; None: the search ended early.
        """
        met = [each.level for each in self._levels.values() if each.met]
        level, fails = (found.level, found.fails) if found else (max(met, default=0.0), math.inf)
        self._series.data.found = Found(
            level=level or None,
            fails=fails if math.isfinite(fails) else None,
            end=found.end.value if found else "early",
            last=found.tried[-1][0] if found else None,
        )
        self._series.data.notes += levels.notes
        self._set_exit_codes(found, level)

    def _set_exit_codes(self, found: SearchResult | None, level: float) -> None:
        """Set the exit codes by the outcome of the search and by the runs at the level that it found."""
        own = [exit_codes.SLO_MISSED] if found and found.end is End.NONE else []
        if found is None or found.end is End.CLIENT:
            own.append(exit_codes.ERRORS if exit_codes.ERRORS in self._series.codes else exit_codes.INVALID)
        rows = [row for row in self._series.points if level and row.level == level]
        if self._requested.strict and any(row.verdict == "SUSPECT" for row in rows):
            own.append(exit_codes.SUSPECT)
        # The codes of other runs do not count: at a level that is too high, requests may well fail.
        of_levels = (exit_codes.SUSPECT, exit_codes.ERRORS)
        self._series.codes[:] = [code for code in self._series.codes if code not in of_levels] + own

    def _say(self, text: str) -> None:
        if not self._requested.quiet:
            print(f"loadgen: {text}", file=sys.stderr, flush=True)

    def _level_text(self, level: float) -> str:
        return f"{level:g} {self._axis.unit}" if math.isfinite(level) else "all requests at once"


def _outcome(met: bool | None, why: str | None, level: LoadLevel | None) -> str:
    """Say how a run ended, or how all runs at its level together did if it alone does not show it."""
    if met is None and level is not None and level.met is not None:
        return f"{OUTCOME[level.met]}, by {level.runs} runs together"
    return OUTCOME[met] + (f" ({why})" if why else "")


def _print_no_report(settings: RunSettings, result: "Result", saved: list[str]) -> None:
    """Print nothing: a run of a search is a line of the table."""
