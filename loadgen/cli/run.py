"""`loadgen run`: measure a server, print the report, save what was asked for."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from loadgen import logs
from loadgen.cli import config, credentials, flags
from loadgen.errors import BadInput
from loadgen.settings import RunSettings

if TYPE_CHECKING:
    from loadgen.measurer import Measurer
    from loadgen.progress import Progress
    from loadgen.results import Result


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    given = flags.run_settings(argv)  # --help ends here, before anything that takes long is imported
    plot = given.pop("plot", None)
    swept, runs = config.swept(given)
    for settings in runs:
        settings.checked()
    logs.to_stderr(runs[0].log_level)
    credentials.warn_of_visible(given)
    if swept is not None:
        from loadgen.cli.sweep import sweep

        return sweep(runs, swept, plot)
    if plot is not None:
        raise BadInput("--plot", "a picture of one run", "give several rates, as --request-rate 1,2,4,8")
    import asyncio

    from loadgen.cli.prometheus import exporting

    with exporting(runs[0]) as export:
        return asyncio.run(run(runs[0], watch=lambda progress, measurer: export(progress)))


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
    from loadgen.cli.interrupts import Interrupts
    from loadgen.cli.measuring import carry_out, print_report

    interrupts = Interrupts()
    ended = await interrupts.obeyed(carry_out(settings, interrupts, watch=watch, also=also, show=print_report))
    return ended.code
