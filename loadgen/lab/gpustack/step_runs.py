"""The runs of the steps of a job, one after the other until one fails: each leaves a summary."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from loadgen.cli import exit_codes
from loadgen.cli.output import say
from loadgen.cli.runs.single_run import run
from loadgen.lab.gpustack import stop_rules
from loadgen.lab.gpustack.job import Job
from loadgen.lab.gpustack.progress import Reporter
from loadgen.lab.gpustack.ramp import point, write_curve
from loadgen.lab.gpustack.steps import Step
from loadgen.lab.gpustack.summary import coverage, summarize
from loadgen.metrics.progress import Progress
from loadgen.metrics.records.file import RecordFile
from loadgen.report import to_json
from loadgen.runner.participant import Participant
from loadgen.runner.run_result import Result
from loadgen.util.files import write_atomic
from loadgen.util.tasks import background_tasks

SATURATED = "requests pile up, and --detect-saturation ends the run"


class StepRuns:
    """The runs of one job.

    Args:
        job: A job without a search.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._reporter = job, Reporter(job.progress)
        self._points: list[dict[str, Any]] = []

    async def execute(self) -> int:
        """Carry the steps out; returns the exit code."""
        async with background_tasks(self._reporter.run()):
            code = await self._steps()
        if code == exit_codes.DONE:
            await self._reporter.finish()
        return code

    async def _steps(self) -> int:
        begun_s = time.monotonic()
        for step in self._job.steps:
            code = await run(step.settings, watch=self._watch(step), save_more=partial(self._save, step))
            if code != exit_codes.DONE:
                return code
        if self._job.has_stages:
            write_curve(self._job.output, self._job.axis, self._points, time.monotonic() - begun_s)
        return exit_codes.DONE

    def _watch(self, step: Step) -> Callable[[Progress, Participant], None]:
        """Return what reports the progress of a step, and ends it where a stop rule says so."""
        piled_up = stop_rules.piled_up(step.settings, SATURATED) if self._job.detect_saturation else lambda _: None

        def watch(progress: Progress, participant: Participant) -> None:
            share = done(progress, step.settings.duration)
            self._reporter.update(100 * (len(self._points) + share) / len(self._job.steps))
            why = piled_up(progress)
            if progress.phase == "running":
                why = why or stop_rules.too_many_errors(self._job, progress)
            if why is not None:
                participant.stop(why)

        return watch

    def _save(self, step: Step, result: Result) -> list[str]:
        assert step.settings.records is not None
        summary = summarize(RecordFile(step.settings.records), step.strategy, result, self._job.phases)
        write_atomic(step.summary, to_json(summary) + "\n")
        if text := coverage(step.summary, summary, "the report below counts all"):
            say(text)
        self._points.append(point(summary, step.strategy.rate or 0.0, len(self._points)))
        return [str(step.summary)]


def done(progress: Progress, duration_s: float | None) -> float:
    """Return how much of a run is done, 0 to 1: its share of requests or of time, whichever is larger."""
    if not progress.measuring:
        return 0.0
    shares = [progress.ended / progress.scheduled] if progress.scheduled else [0.0]
    if duration_s:
        shares.append(progress.elapsed_s / duration_s)
    return min(max(shares), 1.0)
