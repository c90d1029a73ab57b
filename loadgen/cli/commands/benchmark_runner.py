"""`loadgen benchmark-runner benchmark run`: execute a benchmark job of GPUStack."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loadgen.cli import exit_codes
from loadgen.cli.commands import run
from loadgen.cli.gpustack import arguments
from loadgen.cli.import_guard import single_threaded
from loadgen.errors import BadInput
from loadgen.util import log_setup

if TYPE_CHECKING:
    from loadgen.cli.gpustack.job import Job
    from loadgen.cli.gpustack.progress import Reporter
    from loadgen.cli.gpustack.steps import Step
    from loadgen.metrics.progress import Progress
    from loadgen.runner.participant import Participant
    from loadgen.runner.run_result import Result

SATURATED = "requests pile up, and --detect-saturation ends the run"
MIN_ENDED = 30  # requests before --max-error-rate applies, as in guidellm


def main(argv: list[str]) -> int:
    """Execute the runs one after the other until one fails, or the search; returns the exit code."""
    given = arguments.parse(_arguments(argv))  # --help ends here, before any slow import
    import asyncio

    from loadgen.cli.gpustack.flag_names import renamed_flags
    from loadgen.cli.gpustack.job import Job

    with renamed_flags():
        job = Job.of(given)
        log_setup.to_stderr("warning")
        _make_folder(job)
        if job.auto_tune is None:
            return asyncio.run(_execute(job))
        with single_threaded():
            from loadgen.cli.gpustack.search_runs import SearchRuns

        return SearchRuns(job).execute()


def _arguments(argv: list[str]) -> list[str]:
    """Return the words after `benchmark run`; `run` may be left out."""
    if argv in (["-h"], ["--help"]):
        return argv
    if argv[:1] != ["benchmark"]:
        problem = "unknown command" if argv else "missing"
        raise BadInput(
            argv[0] if argv else "benchmark run", problem, "write loadgen benchmark-runner benchmark run FLAGS"
        )
    return argv[2:] if argv[1:2] == ["run"] else argv[1:]


def _make_folder(job: "Job") -> None:
    folder = job.output.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"{folder} cannot be created ({error.strerror})"
        raise BadInput("--output-dir", problem, "choose another folder") from error


async def _execute(job: "Job") -> int:
    from loadgen.cli.gpustack.progress import Reporter
    from loadgen.util.tasks import background_tasks

    reporter = Reporter(job.progress)
    async with background_tasks(reporter.run()):
        code = await _steps(job, reporter)
    if code == exit_codes.DONE:
        await reporter.finish()
    return code


async def _steps(job: "Job", reporter: "Reporter") -> int:
    begun_s, points = time.monotonic(), list[dict[str, Any]]()
    for number, step in enumerate(job.steps):
        saturated = saturation_rule(job, step)

        def watch(
            progress: "Progress",
            participant: "Participant",
            number: int = number,
            step: "Step" = step,
            saturated: "Callable[[Progress], bool]" = saturated,
        ) -> None:
            reporter.update(100 * (number + done(progress, step.settings.duration)) / len(job.steps))
            if saturated(progress):
                participant.stop(SATURATED)
            if progress.phase == "running" and (why := too_many(job, progress)):
                participant.stop(why)

        def save_more(result: "Result", number: int = number, step: "Step" = step) -> list[str]:
            from loadgen.cli.gpustack.ramp import point

            path, summary = _save(job, step, result)
            points.append(point(summary, step.strategy.rate or 0.0, number))
            return [path]

        code = await run.run(step.settings, watch=watch, save_more=save_more)
        if code != exit_codes.DONE:
            return code
    if job.has_stages:
        from loadgen.cli.gpustack.ramp import write_curve

        write_curve(job.output, job.axis, points, time.monotonic() - begun_s)
    return exit_codes.DONE


def saturation_rule(job: "Job", step: "Step") -> "Callable[[Progress], bool]":
    """Return a rule that tells whether requests of a run pile up, by its progress so far, if the job asks for it."""
    if not job.detect_saturation:
        return lambda progress: False
    from loadgen.cli.live.backlog import LiveBacklog

    backlog = LiveBacklog(step.settings)

    def rule(progress: "Progress") -> bool:
        backlog.add(progress)
        return backlog.overloaded

    return rule


def done(progress: "Progress", duration_s: float | None) -> float:
    """Return how much of a run is done, 0 to 1: its share of requests or of time, whichever is larger."""
    if not progress.measuring:
        return 0.0
    shares = [progress.ended / progress.scheduled] if progress.scheduled else [0.0]
    if duration_s:
        shares.append(progress.elapsed_s / duration_s)
    return min(max(shares), 1.0)


def too_many(job: "Job", progress: "Progress") -> str | None:
    """Describe the limit on errors that is exceeded, or return None."""
    failed = progress.ended - progress.ok
    if job.max_errors is not None and failed >= job.max_errors:
        return f"{failed} requests failed, and --max-errors is {job.max_errors}"
    share = failed / progress.ended if progress.ended >= MIN_ENDED else 0.0
    if job.max_error_rate is not None and share > job.max_error_rate:
        return f"{failed} of {progress.ended} requests failed, and --max-error-rate is {job.max_error_rate:g}"
    return None


def _save(job: "Job", step: "Step", result: "Result") -> tuple[str, dict[str, Any]]:
    """Write the summary of a run; returns its path, and the summary."""
    from loadgen.cli.gpustack.summary import summarize
    from loadgen.metrics.records.file import RecordFile
    from loadgen.report import to_json
    from loadgen.util.atomic_file import write_atomic

    assert step.settings.records is not None
    summary = summarize(RecordFile(step.settings.records), step.strategy, result, job.phases)
    write_atomic(step.summary, to_json(summary) + "\n")
    return str(step.summary), summary
