"""`loadgen run`: measure a server, print the report, save what was asked for."""

import asyncio
import logging
import signal
import sys
from typing import TYPE_CHECKING, Any, TextIO

from loadgen.cli import config, exits, flags
from loadgen.cli.progress import View, progress_view
from loadgen.settings import RunSettings

if TYPE_CHECKING:
    from loadgen.measurer import Measurer


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    settings = config.settings(flags.parse(argv)).checked()
    logging.basicConfig(
        level=settings.log_level.upper(), format="loadgen: %(levelname)s: %(message)s", stream=sys.stderr
    )
    return asyncio.run(_run(settings))


async def _run(settings: RunSettings) -> int:
    from loadgen.measurer import Worker

    async with Worker() as worker:  # they import what they need while this process does the same
        from loadgen import report, runner

        report.check_writable(settings)
        with progress_view(settings) as view:
            task = asyncio.ensure_future(runner.run(settings, measurer=worker, on_progress=view.show))
            interrupts = _obey_signals(task, worker, view)
            try:
                result = await task
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None
    _print(settings, result.data)
    try:
        for path in report.save(settings, result):
            print(f"Saved: {path}", file=_human(settings))
    except OSError as error:
        print(f"loadgen run: the result could not be saved: {error}", file=sys.stderr)
        return exits.INTERNAL
    return exits.code(
        result.data, strict=settings.strict, max_error_rate=settings.max_error_rate, interrupted=bool(interrupts)
    )


def _obey_signals(task: "asyncio.Task[Any]", worker: "Measurer", view: View) -> list[str]:
    """Ctrl-C once: send nothing more and wait; twice: end now; before anything is measured: give up.

    Returns the list to which every interrupt is added.
    """
    interrupts: list[str] = []

    def interrupt() -> None:
        interrupts.append("interrupted")
        if view.measuring and len(interrupts) == 1:
            view.note("interrupted: waiting for requests in flight; once more to end them now")
            worker.stop("interrupted")
        elif view.measuring and len(interrupts) == 2:
            worker.abort("interrupted")
        else:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    return interrupts


def _print(settings: RunSettings, data: dict[str, Any]) -> None:
    from loadgen import report

    print(report.render(data), end="", file=_human(settings), flush=True)
    if settings.json:
        print(report.to_json(data), flush=True)


def _human(settings: RunSettings) -> TextIO:
    """Where what a person reads goes: stdout, unless that is for JSON."""
    return sys.stderr if settings.json else sys.stdout
