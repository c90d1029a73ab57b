"""`loadgen run`: measure a server, print the report, save what was asked for."""

import asyncio
import logging
import signal
import sys
from typing import Any

from loadgen.cli import config, exits, flags
from loadgen.cli.progress import progress_view
from loadgen.settings import RunSettings


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    settings = config.settings(flags.parse(argv)).checked()
    logging.basicConfig(level=settings.log_level.upper(), format="loadgen: %(levelname)s: %(message)s", stream=sys.stderr)
    return asyncio.run(_run(settings))


async def _run(settings: RunSettings) -> int:
    from loadgen.crew import Workers

    crew = Workers()
    await crew.begin()  # the workers import what they need while this process does the same
    from loadgen import report, runner

    report.check_writable(settings)
    interrupts: list[str] = []
    with progress_view(settings) as view:
        task = asyncio.ensure_future(runner.run(settings, crew=crew, on_progress=view.show))

        def interrupt() -> None:
            interrupts.append("interrupted")
            if len(interrupts) == 1 and view.measuring:
                view.note("interrupted: waiting for requests in flight; once more to end them")
                crew.stop("interrupted")
            elif len(interrupts) == 2 and view.measuring:
                crew.abort("interrupted")
            else:
                task.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, interrupt)
        try:
            result = await task
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
    saved = report.save(settings, result)
    _print(settings, result.data, saved)
    return exits.code(
        result.data, strict=settings.strict, max_error_rate=settings.max_error_rate, interrupted=bool(interrupts)
    )


def _print(settings: RunSettings, data: dict[str, Any], saved: list[str]) -> None:
    from loadgen import report

    human = sys.stderr if settings.json else sys.stdout
    human.write(report.render(data))
    for path in saved:
        human.write(f"Saved: {path}\n")
    human.flush()
    if settings.json:
        sys.stdout.write(report.to_json(data) + "\n")
        sys.stdout.flush()
