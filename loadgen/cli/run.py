"""`loadgen run`: measure a server, print the report, save what was asked for."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from loadgen import logs
from loadgen.cli import config, credentials, exits, flags
from loadgen.cli.importing import single_threaded
from loadgen.cli.journal import journal
from loadgen.cli.progress import View, progress_view
from loadgen.settings import KEY_VARIABLE, RunSettings

if TYPE_CHECKING:
    from loadgen.measurement import Progress
    from loadgen.measurer import Measurer
    from loadgen.results import Result


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    given = flags.run_settings(argv)
    settings = config.settings(given).checked()
    logs.to_stderr(settings.log_level)
    if credentials.on_the_command_line(given):
        logging.warning(
            "--api-key: other users of this machine can read it while this runs; give @FILE, or set %s", KEY_VARIABLE
        )
    return asyncio.run(run(settings))


async def run(
    settings: RunSettings,
    *,
    watch: "Callable[[Progress, Measurer], None]" = lambda progress, measurer: None,
    also: "Callable[[Result], list[str]]" = lambda result: [],
) -> int:
    """Carry out one run; returns the exit code.

    Args:
        settings: Of the run, checked.
        watch: Is told of its progress too, and may stop whoever measures.
        also: Saves more of the result, and returns the paths; an OSError counts as one of the result's own files.
    """
    from loadgen import measurers
    from loadgen.preparer import Preparer

    # They import what they need while this process does the same.
    async with measurers.of(settings) as measurer, Preparer() as preparer:
        with single_threaded():
            from loadgen import report, runner

        report.check_writable(settings)
        with journal(wanted=not settings.records) as kept:
            with progress_view(settings) as view:

                def show(progress: "Progress") -> None:
                    view.show(progress)
                    watch(progress, measurer)

                work = runner.run(settings, measurer=measurer, preparer=preparer, on_progress=show, journal=kept.path)
                task = asyncio.ensure_future(work)
                interrupts = _obey_signals(task, measurer, view)
                try:
                    result = await task
                except asyncio.CancelledError:
                    raise KeyboardInterrupt from None
            try:
                saved = report.save(settings, result.data, result.snapshot) + also(
                    result
                )  # first: whoever reads us may be gone
            except OSError as error:
                _print(settings, result.data, [])
                print(f"loadgen run: the result could not be saved: {error}", file=sys.stderr)
                return exits.INTERNAL
            _print(settings, result.data, saved)
            kept.error = result.data["loadgen"]["client"]["records_error"]
            lost = _lost(settings, result.data["loadgen"]["client"])
            for line in lost:
                print(f"loadgen run: {line}", file=sys.stderr)
            kept.needed = result.snapshot.partial is not None
    if lost:
        return exits.INTERNAL
    return exits.code(
        result.data, strict=settings.strict, max_error_rate=settings.max_error_rate, interrupted=bool(interrupts)
    )


def _lost(settings: RunSettings, client: dict[str, Any]) -> list[str]:
    """What of the files that were asked for could not be written while the run went on."""
    errors = {"records": settings.records and client["records_error"]}
    errors["capture"] = client["capture"] and client["capture"]["error"]
    return [f"--{name} {getattr(settings, name)} is not complete: {error}" for name, error in errors.items() if error]


def _obey_signals(task: "asyncio.Task[Any]", measurer: "Measurer", view: View) -> list[str]:
    """Ctrl-C once: send nothing more and wait; twice, SIGTERM, or a terminal that has gone: end now.

    Before anything is measured, each of them means to give up.

    Returns the list to which every interrupt is added.
    """
    interrupts: list[str] = []

    def interrupt(patient: bool) -> None:
        interrupts.append("interrupted")
        if not view.measuring:
            task.cancel()
        elif patient and len(interrupts) == 1:
            view.note("interrupted: waiting for requests in flight; once more to end them now")
            measurer.stop("interrupted")
        else:
            measurer.abort("interrupted")

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupt, True)
    loop.add_signal_handler(signal.SIGTERM, interrupt, False)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup has the run outlive the terminal
        loop.add_signal_handler(signal.SIGHUP, interrupt, False)
    return interrupts


def _print(settings: RunSettings, data: dict[str, Any], saved: list[str]) -> None:
    from loadgen import report

    text = report.render(data) + "".join(f"Saved: {path}\n" for path in saved)
    print(text, end="", file=_human(settings), flush=True)
    if settings.json:
        print(report.to_json(data), flush=True)


def _human(settings: RunSettings) -> TextIO:
    """Where what a person reads goes: stdout, unless that is for JSON."""
    return sys.stderr if settings.json else sys.stdout
