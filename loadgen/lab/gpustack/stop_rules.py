"""Stop rules: for what the progress of a run ends it, in a job of steps as in a search."""

from collections.abc import Callable

from loadgen.cli.live.backlog import LiveBacklog
from loadgen.config.settings import RunSettings
from loadgen.lab.gpustack.job import Job
from loadgen.metrics.progress import Progress

MIN_ENDED = 30  # requests before --max-error-rate applies, as in guidellm
StopRule = Callable[[Progress], str | None]  # returns why a run ends; None as long as it goes on


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
        return f"{failed} of {progress.ended} requests failed, and --max-error-rate is {job.max_error_rate:g}"
    return None
