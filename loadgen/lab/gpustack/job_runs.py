"""The runs of a job: `StepRuns` of given loads, `SearchRuns` of --auto-tune; and the stop rules of
both.

The runs of steps follow one another until one fails, and each leaves a summary. Each run of a
search leaves its records, and each load a summary.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from loadgen.analysis.search.algorithm import End
from loadgen.analysis.search.early_stop import StopRule
from loadgen.analysis.search.levels import PILED_UP, InconclusiveRun
from loadgen.analysis.search.load_search import LoadSearch
from loadgen.analysis.search.search_bounds import SearchBounds, ThroughputGain, misses_rate
from loadgen.cli import exit_codes
from loadgen.cli.live.history import LiveBacklog
from loadgen.cli.output import say
from loadgen.cli.runs.run_series import SeriesRunner
from loadgen.cli.runs.single_run import run
from loadgen.config.settings import RunSettings
from loadgen.lab.gpustack.job import Job
from loadgen.lab.gpustack.progress import Reporter
from loadgen.lab.gpustack.ramp import Ramp, point, write_curve
from loadgen.lab.gpustack.steps import Step
from loadgen.lab.gpustack.summary import coverage, summarize
from loadgen.metrics.progress import Progress
from loadgen.metrics.records.file import RecordFile
from loadgen.report import to_json
from loadgen.runner.participant import Participant
from loadgen.runner.run_result import Result
from loadgen.runner.server import Server
from loadgen.util.files import write_atomic
from loadgen.util.tasks import background_tasks

MIN_ENDED = 30  # requests before --max-error-rate applies, as in guidellm
RESOLUTION = 0.025  # between the highest load within the limits and the lowest beyond them
OUT_OF_TIME = "--max-total-seconds are over"
SATURATED = "requests pile up, and --detect-saturation ends the run"


def piled_up(settings: RunSettings, why: str) -> StopRule:
    """Make the rule that ends a run once requests pile up, with the reason `why`."""
    backlog = LiveBacklog(settings)

    def rule(progress: Progress) -> str | None:
        backlog.add(progress)
        return why if backlog.overloaded else None

    return rule


def too_many_failed(job: Job, failed: int) -> str | None:
    """Describe that a job's limit on failed requests is reached, or return None."""
    if job.max_errors is None or failed < job.max_errors:
        return None
    return f"{failed} requests failed, and --max-errors is {job.max_errors}"


def too_many_errors(job: Job, progress: Progress) -> str | None:
    """Describe the limit on errors that a run exceeds so far, or return None."""
    failed = progress.ended - progress.ok
    share = failed / progress.ended if progress.ended >= MIN_ENDED else 0.0
    if (why := too_many_failed(job, failed)) is not None:
        return why
    if job.max_error_rate is not None and share > job.max_error_rate:
        return (
            f"{failed} of {progress.ended} requests failed, and --max-error-rate is "
            f"{job.max_error_rate:g}"
        )
    return None


class SearchRuns:
    """The runs of one search.

    Args:
        job: A job with a search.
    """

    def __init__(self, job: Job) -> None:
        assert job.auto_tune is not None
        self._job = job
        self._tuned = job.auto_tune
        self._reporter = Reporter(job.progress)
        self._ramp = Ramp(job.auto_tune)
        self._beyond = misses_rate if self._tuned.axis == "rate" else ThroughputGain()
        bounds = SearchBounds(
            min_level=self._tuned.lower_bound,
            max_level=self._tuned.upper_bound,
            resolution=RESOLUTION,
            looks=1,  # a point of GPUStack's is one run
            max_runs=self._tuned.max_points,
            run_s=self._tuned.run_s,
            misses=self._misses,
            stop_rules=partial(piled_up, why=PILED_UP),
            counted=job.phases.counted,
            new_seeds=self._tuned.seed_increment,
        )
        self._search = LoadSearch(self._tuned.settings, self._tuned.axis, self._tuned.first, bounds)
        self._series = SeriesRunner(self._search.data, self._tuned.settings, None)
        self._last: tuple[RunSettings, Result] | None = None
        self._ends_s = 0.0

    def execute(self) -> int:
        """Carry the search out, and write the file of how it ended; returns the exit code."""
        return self._series.execute(self._search_at, self._search.first_settings)

    async def _search_at(self, server: Server) -> None:
        begun_s = time.monotonic()
        self._ends_s = begun_s + self._tuned.max_total_seconds

        async def measure(settings: RunSettings, name: str, stop: StopRule) -> Result:
            if time.monotonic() >= self._ends_s:
                self._ramp.out_of_time = True
                raise InconclusiveRun(OUT_OF_TIME)
            level = self._search.level_of(settings)
            title = f"run {len(self._series.data.points) + 1}, {self._search.level_text(level)}"
            run_server = structs.replace(server, settings=settings)

            def stop_in_time(progress: Progress) -> str | None:
                runs = len(self._series.data.points)
                left_s = self._ends_s - time.monotonic()
                share = progress.ended / progress.scheduled if progress.scheduled else 0.0
                spent = max(
                    (runs + share) / self._tuned.max_points,
                    1 - left_s / self._tuned.max_total_seconds,
                )
                self._reporter.update(100 * spent)
                if left_s <= 0:
                    self._ramp.out_of_time = True
                    return OUT_OF_TIME
                return stop(progress)

            result = await self._series.run(
                run_server, settings, level, title=title, stop=stop_in_time
            )
            self._last = settings, result
            return result

        async with background_tasks(self._reporter.run()):
            try:
                await self._search.execute(
                    server.settings, measure, self._records, self._series.say, self._save_point
                )
            finally:
                self._ramp.spent_s = time.monotonic() - begun_s
                self._set_exit_codes()
                if self._ramp.points and not self._series.interrupts.count:
                    self._ramp.write(self._search.data)
        await self._reporter.finish()

    def _misses(self, level: float, result: Result) -> str | None:
        if (failed := too_many_failed(self._job, result.numbers.failed)) is not None:
            return failed
        why = self._beyond(level, result)
        if why is not None:
            self._ramp.beyond_capacity.add(level)
        return why

    def _save_point(self) -> None:
        """Write the summary of the load that was run last, as far as its runs show whether it is
        within the limits.
        """
        if self._last is None:
            return
        settings, result = self._last
        self._last = None
        assert settings.records is not None
        load = self._search.level_of(settings)
        judged = next(level for level in self._search.data.levels if level.level == load)
        if judged.why == PILED_UP:
            self._ramp.beyond_capacity.add(load)
        strategy = self._tuned.strategy(load, judged.met)
        summary = summarize(RecordFile(settings.records), strategy, result, self._job.phases)
        summary["loadgen"] |= {"load": load, "met": judged.met, "why": judged.why}
        path = self._ramp.add(load, summary)
        write_atomic(path, to_json(summary) + "\n")
        if text := coverage(path, summary, "so do the limits, and the rates of this log count all"):
            self._series.say(text)

    @contextlib.contextmanager
    def _records(self, name: str) -> Iterator[Path]:
        """Yield the path of the next run's records, which are kept."""
        yield self._tuned.records(len(self._series.data.points) + 1)

    def _set_exit_codes(self) -> None:
        """Set the exit code by the outcome of the search: failures of single loads are what it
        looks for.
        """
        outcome = self._search.outcome
        level = self._search.found_level
        codes = []
        if not level and (outcome is None or outcome.end is not End.NONE):
            codes.append(
                exit_codes.ERRORS if exit_codes.ERRORS in self._series.codes else exit_codes.INVALID
            )
        elif not level and not self._tuned.limits:
            codes.append(exit_codes.SLO_MISSED)
        kept = (exit_codes.INTERNAL, exit_codes.INTERRUPTED)
        self._series.codes[:] = [code for code in self._series.codes if code in kept] + (
            codes or [exit_codes.DONE]
        )


class StepRuns:
    """The runs of one job.

    Args:
        job: A job without a search.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._reporter = Reporter(job.progress)
        self._points: list[dict[str, Any]] = []

    async def execute(self) -> int:
        """Carry the steps out; returns the exit code."""
        begun_s = time.monotonic()
        async with background_tasks(self._reporter.run()):
            for step in self._job.steps:
                backlog_rule = None
                if self._job.detect_saturation:
                    backlog_rule = piled_up(step.settings, SATURATED)
                code = await run(
                    step.settings,
                    watch=partial(self._watch, step, backlog_rule),
                    save_more=partial(self._save, step),
                )
                if code != exit_codes.DONE:
                    return code
            # Stages have summaries of their own.
            if any(step.summary != self._job.output for step in self._job.steps):
                write_curve(
                    self._job.output, self._job.axis, self._points, time.monotonic() - begun_s
                )
        await self._reporter.finish()
        return exit_codes.DONE

    def _watch(
        self,
        step: Step,
        backlog_rule: Callable[[Progress], str | None] | None,
        progress: Progress,
        participant: Participant,
    ) -> None:
        """Report the progress of a step, and end it where a stop rule says so."""
        share = done(progress, step.settings.duration)
        self._reporter.update(100 * (len(self._points) + share) / len(self._job.steps))
        why = backlog_rule(progress) if backlog_rule is not None else None
        if progress.phase == "running":
            why = why or too_many_errors(self._job, progress)
        if why is not None:
            participant.stop(why)

    def _save(self, step: Step, result: Result) -> list[str]:
        assert step.settings.records is not None
        summary = summarize(
            RecordFile(step.settings.records), step.strategy, result, self._job.phases
        )
        write_atomic(step.summary, to_json(summary) + "\n")
        if text := coverage(step.summary, summary, "the report below counts all"):
            say(text)
        self._points.append(point(summary, step.strategy.rate or 0.0, len(self._points)))
        return [str(step.summary)]


def done(progress: Progress, duration_s: float | None) -> float:
    """Return how much of a run is done, 0 to 1: its share of requests or of time, whichever is
    larger.
    """
    if not progress.measuring:
        return 0.0
    shares = [progress.ended / progress.scheduled] if progress.scheduled else [0.0]
    if duration_s:
        shares.append(progress.elapsed_s / duration_s)
    return min(max(shares), 1.0)
