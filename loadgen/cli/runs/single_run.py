"""One run of a command: measured, shown and saved."""

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct

from loadgen.cli import exit_codes
from loadgen.cli.import_guard import single_threaded
from loadgen.cli.live.view import progress_view
from loadgen.cli.output import append_result_summary, say
from loadgen.cli.runs.interrupts import Interrupts
from loadgen.cli.runs.journal import journal
from loadgen.config import output_check
from loadgen.config.settings import RunSettings, is_bounded_by_time
from loadgen.errors import GivenUp
from loadgen.metrics.progress import Progress
from loadgen.runner.coordinator import open_participant
from loadgen.runner.job import PROGRESS_S, UNWATCHED_S
from loadgen.runner.metrics_scraper import forked_scraper
from loadgen.runner.preparer import Preparer
from loadgen.util.terminal_text import Screen

if TYPE_CHECKING:
    from loadgen.runner.participant import Participant
    from loadgen.runner.run_result import Result
    from loadgen.runner.server import Server


class FinishedRun(Struct, frozen=True):
    """A finished run.

    Attributes:
        result: Its result.
        saved: The paths of the files that were written.
        code: Its exit code.
    """

    result: "Result"
    saved: list[str]
    code: int


async def execute(
    settings: RunSettings,
    interrupts: Interrupts,
    *,
    server: "Server | None" = None,
    progress_period_s: float = PROGRESS_S,
    watch: "Callable[[Progress, Participant], None]" = lambda progress, participant: None,
    on_server: "Callable[[Server], None]" = lambda server: None,
    save_more: "Callable[[Result], list[str]]" = lambda result: [],
    show: "Callable[[Result, list[str]], None] | None" = None,
) -> FinishedRun:
    """Execute one run, print its report and save the files that the settings ask for.

    Args:
        settings: The checked settings of the run.
        interrupts: Receives the signals while the run goes on.
        server: A server that answers already, with the settings of this run; None: start or probe
            it.
        progress_period_s: How often the progress of the run is reported, s.
        watch: Is called with each progress update, and may stop the run.
        on_server: Is called with the server once it is known, with the settings of this run as they
            are for it.
        save_more: Saves more of the result and returns the paths; an OSError counts as one of the
            result's own files.
        show: Prints the result, with the paths of its files; None: the report is printed.

    Raises:
        GivenUp: A signal ended it before anything was measured.
        LoadgenError: The run failed.
    """
    with journal(
        enabled=not settings.records
    ) as crash_journal:  # closed when nothing writes to it any more
        # New processes import their modules while this one imports its own.
        async with (
            open_participant(settings) as participant,
            Preparer(keep=server is not None) as preparer,
            forked_scraper() as scraper,
        ):
            with single_threaded():
                from loadgen.runner import run

            output_check.check_writable(settings)
            say_overwriting(output_check.files_to_overwrite(settings))
            with progress_view(settings) as view:
                interrupts.attach(participant, view)

                def on_progress(progress: Progress) -> None:
                    if progress.phase == "running":
                        import loadgen.report
                        import loadgen.runner.run_result  # noqa: F401 - not before, so that the run begins sooner

                    watch(progress, participant)
                    # Last, so that the exported metrics are never older than what is shown.
                    view.show(progress)

                opened = (
                    run.serving(settings, on_progress, scraper=scraper)
                    if server is None
                    else contextlib.nullcontext(server)
                )
                async with opened as serving:
                    on_server(serving)
                    result = await run.run(
                        settings,
                        server=serving.for_first_run() if server is None else serving,
                        participant=participant,
                        preparer=preparer,
                        scraper=scraper,
                        on_progress=on_progress,
                        progress_period_s=progress_period_s,
                        journal=crash_journal.path,
                    )
            if interrupts.count and not result.snapshot.rows:  # files of earlier runs stay
                raise GivenUp
            from loadgen import report

            # Before printing, since the reader of a pipe may be gone.
            saved = report.save(settings, result, result.snapshot)
            try:
                saved.paths.extend(save_more(result))
            except OSError as error:
                saved.errors.append(f"the result could not be saved: {error}")
            if show is None:
                print_report(settings, result, saved.paths)
            else:
                show(result, saved.paths)
            crash_journal.error = result.client.records_error
            for line in saved.errors:
                say(line)
            crash_journal.needed = result.snapshot.partial is not None or bool(saved.errors)
    if saved.errors:
        return FinishedRun(result, saved.paths, exit_codes.INTERNAL)
    code = exit_codes.code(
        result,
        strict=settings.strict,
        interrupted=interrupts.count > 0,
    )
    return FinishedRun(result, saved.paths, code)


async def run(
    settings: RunSettings,
    *,
    watch: "Callable[[Progress, Participant], None]" = lambda progress, participant: None,
    on_server: "Callable[[Server], None]" = lambda server: None,
    save_more: "Callable[[Result], list[str]]" = lambda result: [],
) -> int:
    """Execute one run as `execute` does, with signal handlers installed; returns the exit code.

    Args:
        settings: The checked settings of the run.
        watch: Is called with each progress update, and may stop the run.
        on_server: Is called with the server once it is known.
        save_more: Saves more of the result and returns the paths; an OSError counts as one of the
            result's own files.

    Raises:
        GivenUp: A signal ended it before anything was measured.
        LoadgenError: The run failed.
    """

    def save_all(result: "Result") -> list[str]:
        append_result_summary(result)
        return save_more(result)

    interrupts = Interrupts()
    work = execute(
        settings,
        interrupts,
        progress_period_s=progress_period_s(settings),
        watch=watch,
        on_server=on_server,
        save_more=save_all,
    )
    finished = await interrupts.run_interruptible(work)
    if settings.json:
        # Not before: it is slow to import, and processes must be started first.
        from loadgen import report

        print(report.to_json(finished.result.data), flush=True)
    return finished.code


def say_overwriting(paths: Sequence[str]) -> None:
    """Print which existing files will be overwritten."""
    for path in paths:
        say(f"overwriting {path}")


def print_report(settings: RunSettings, result: "Result", saved: list[str]) -> None:
    """Print the report of a run and the paths of its files."""
    from loadgen import report

    out = human(settings)
    text = report.render(result, form=settings.report_form, saved=saved, screen=Screen.of(out))
    print(text, end="", file=out, flush=True)


def human(settings: RunSettings) -> TextIO:
    """Return the stream for text: stdout, or stderr if stdout is for JSON."""
    return sys.stderr if settings.json else sys.stdout


def progress_period_s(settings: RunSettings) -> float:
    """Return how often the progress is reported, s: seldom if nobody and nothing reads it."""
    is_read = (
        not settings.quiet
        or settings.prometheus is not None
        or settings.stop_when is not None
        or is_bounded_by_time(settings)  # prompts are prepared ahead of it
    )
    return PROGRESS_S if is_read else UNWATCHED_S
