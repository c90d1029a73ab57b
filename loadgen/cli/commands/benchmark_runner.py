"""`loadgen benchmark-runner benchmark run`: execute a benchmark job of GPUStack."""

from typing import TYPE_CHECKING, Any

from loadgen.cli import exit_codes
from loadgen.cli.commands import run
from loadgen.cli.gpustack import arguments
from loadgen.errors import BadInput
from loadgen.util import log_setup

if TYPE_CHECKING:
    from loadgen.cli.gpustack.job import Job, Step
    from loadgen.cli.gpustack.progress import Reporter
    from loadgen.metrics.progress import Progress
    from loadgen.runner.participant import Participant
    from loadgen.runner.run_result import Result

MIN_ENDED = 30  # requests before --max-error-rate applies, as in guidellm


def main(argv: list[str]) -> int:
    """Execute the runs one after the other until one fails; returns the exit code of the last."""
    given = arguments.parse(_arguments(argv))  # --help ends here, before any slow import
    import asyncio

    from loadgen.cli.gpustack.job import Job, renamed_flags

    job = Job.of(given)
    log_setup.to_stderr("warning")
    with renamed_flags():
        return asyncio.run(_execute(job))


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


async def _execute(job: "Job") -> int:
    from loadgen.cli.gpustack.progress import Reporter
    from loadgen.util.tasks import background_tasks

    for folder in {step.summary.parent for step in job.steps}:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                "--output-dir", f"{folder} cannot be created ({error.strerror})", "choose another folder"
            ) from error
    if job.progress is None:
        return await _steps(job, None)
    reporter = Reporter(job.progress)
    async with background_tasks(reporter.run()):
        code = await _steps(job, reporter)
    if code == exit_codes.DONE:
        await reporter.finish()
    return code


async def _steps(job: "Job", reporter: "Reporter | None") -> int:
    for number, step in enumerate(job.steps):

        def watch(progress: "Progress", participant: "Participant", number: int = number, step: "Step" = step) -> None:
            if reporter is not None:
                reporter.update(100 * (number + done(progress, step.settings.duration)) / len(job.steps))
            if progress.phase == "running" and (why := too_many(job, progress)):
                participant.stop(why)

        def save_more(result: "Result", step: "Step" = step) -> list[str]:
            return [_save(step, result)]

        code = await run.run(step.settings, watch=watch, save_more=save_more)
        if code != exit_codes.DONE:
            return code
    return exit_codes.DONE


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


def _save(step: "Step", result: "Result") -> str:
    from loadgen.cli.gpustack.summary import summarize
    from loadgen.metrics.records.file import RecordFile
    from loadgen.report import to_json
    from loadgen.util.atomic_file import write_atomic

    assert step.settings.records is not None
    summary: dict[str, Any] = summarize(RecordFile(step.settings.records), step.strategy, result)
    write_atomic(step.summary, to_json(summary) + "\n")
    return str(step.summary)
