"""Measuring: one run of a command, shown and saved."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from loadgen.cli import exit_codes
from loadgen.cli.import_guard import single_threaded
from loadgen.cli.interrupts import Interrupts
from loadgen.cli.journal import journal
from loadgen.cli.live.view import progress_view
from loadgen.config.settings import RunSettings

if TYPE_CHECKING:
    from loadgen.metrics.progress import Progress
    from loadgen.runner.coordinator import Measurer
    from loadgen.runner.run_result import Result
    from loadgen.runner.server import Server


@dataclass(frozen=True)
class Ended:
    """A run that has ended.

    Attributes:
        result: What it found.
        saved: The files of it.
        code: The exit code that it deserves.
    """

    result: "Result"
    saved: list[str]
    code: int


async def carry_out(
    settings: RunSettings,
    interrupts: Interrupts,
    *,
    server: "Server | None" = None,
    watch: "Callable[[Progress, Measurer], None]" = lambda progress, measurer: None,
    also: "Callable[[Result], list[str]]" = lambda result: [],
    show: "Callable[[RunSettings, Result, list[str]], None]",
) -> Ended:
    """Carry out one run, show its report and save what was asked for.

    Args:
        settings: Of the run, checked.
        interrupts: What a Ctrl-C is told to.
        server: Who is measured, where it serves already, with the settings of this run as they are for it.
        watch, also: See `run`.
        show: Prints the report, given the settings, the result and its files.
    """
    from loadgen.runner import coordinators
    from loadgen.runner.prepare import Preparer

    with journal(wanted=not settings.records) as kept:  # looked at when nobody writes any more
        # They import what they need while this process does the same.
        async with coordinators.of(settings) as measurer, Preparer() as preparer:
            with single_threaded():
                from loadgen import report
                from loadgen.runner import run

            report.check_writable(settings)
            say_overwriting(report.overwritten(settings))
            with progress_view(settings) as view:
                interrupts.concern(measurer, view)

                def tell(progress: "Progress") -> None:
                    watch(progress, measurer)
                    view.show(progress)  # last: whoever reads it may ask for what is exported

                result = await run.run(
                    settings, server=server, measurer=measurer, preparer=preparer, on_progress=tell, journal=kept.path
                )
            saved = report.save(settings, result, result.snapshot)  # first: whoever reads us may be gone
            try:
                saved.paths.extend(also(result))
            except OSError as error:
                saved.lost.append(f"the result could not be saved: {error}")
            show(settings, result, saved.paths)
            kept.error = result.client.records_error
            for line in saved.lost:
                print(f"loadgen: {line}", file=sys.stderr)
            kept.needed = result.snapshot.partial is not None or bool(saved.lost)
    if saved.lost:
        return Ended(result, saved.paths, exit_codes.INTERNAL)
    code = exit_codes.code(
        result,
        strict=settings.strict,
        max_error_rate=settings.max_error_rate,
        interrupted=interrupts.heard > 0,
    )
    return Ended(result, saved.paths, code)


def say_overwriting(paths: Sequence[str]) -> None:
    """Say which files of earlier runs will be lost."""
    for path in paths:
        print(f"loadgen: overwriting {path}", file=sys.stderr, flush=True)


def print_report(settings: RunSettings, result: "Result", saved: list[str]) -> None:
    """Print the report of a run, where it was saved, and the JSON, where that is asked for."""
    from loadgen import report

    print_text(settings, result, saved)
    if settings.json:
        print(report.to_json(result.data), flush=True)


def print_text(settings: RunSettings, result: "Result", saved: list[str]) -> None:
    """Print the report of a run, and where it was saved."""
    from loadgen import report

    text = report.render(result) + "".join(f"Saved: {path}\n" for path in saved)
    print(text, end="", file=human(settings), flush=True)


def human(settings: RunSettings) -> TextIO:
    """Where what a person reads goes: stdout, unless that is for JSON."""
    return sys.stderr if settings.json else sys.stdout
