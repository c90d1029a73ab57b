"""`loadgen run`: measure a server, print the report, save what was asked for."""

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from loadgen.cli import credentials, flags, run_settings
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util import log_setup

MOST_AT_ONCE = 100  # more are warned of

if TYPE_CHECKING:
    from loadgen.metrics.progress import Progress
    from loadgen.runner.participant import Participant
    from loadgen.runner.run_result import Result


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    given = flags.run_settings(argv)  # --help ends here, before anything that takes long is imported
    plot = given.pop("plot", None)
    swept, runs = run_settings.swept(given)
    for settings in runs:
        settings.checked()
    log_setup.to_stderr(runs[0].log_level)
    credentials.warn_of_visible(given)
    if swept is not None:
        from loadgen.cli.sweep import sweep

        return sweep(runs, swept, plot)
    if plot is not None:
        raise BadInput("--plot", "a picture of one run", "give several rates, as --request-rate 1,2,4,8")
    import asyncio

    from loadgen.cli.metrics_endpoint import exporting
    from loadgen.metrics.progress import PHASES

    warnings = [burst(given, runs[0])]
    with exporting(runs[0]) as export:

        def watch(progress: "Progress", measurer: "Participant") -> None:
            made = progress.phase == "preparing" and progress.ended
            if made or progress.phase in PHASES:  # the server answers, prompts can be made, and nothing has been sent
                for warning in filter(None, warnings):
                    logging.warning(warning)
                warnings.clear()
            export(progress)

        return asyncio.run(run(runs[0], watch=watch))


def burst(given: dict[str, Any], settings: RunSettings) -> str | None:
    """A warning where a server of the user's is about to get many requests at once, and nobody asked for that.

    Args:
        given: What flags give, by the names of settings; a config file is taken to say all that is meant.
        settings: Of the run.
    """
    from loadgen.runner.engine_session import wants_engine
    from loadgen.workload.arrivals import DEFAULT_COUNT

    count = settings.num_prompts or DEFAULT_COUNT
    meant = "request_rate" in given or "config" in given or wants_engine(settings)
    bounded = settings.max_concurrency is not None or settings.ramp_up_strategy is not None or settings.timed_by_data
    if meant or bounded or math.isfinite(settings.request_rate) or count <= MOST_AT_ONCE:
        return None
    remedy = "give --rate N or --max-concurrency N to spread them, or --rate inf if this is intended"
    return f"{count} requests will be sent at once: {remedy}"


async def run(
    settings: RunSettings,
    *,
    watch: "Callable[[Progress, Participant], None]" = lambda progress, measurer: None,
    also: "Callable[[Result], list[str]]" = lambda result: [],
) -> int:
    """Carry out one run; returns the exit code.

    Args:
        settings: Of the run, checked.
        watch: Is told of its progress too, and may stop whoever measures.
        also: Saves more of the result, and returns the paths; an OSError counts as one of the result's own files.
    """
    from loadgen.cli.interrupts import Interrupts
    from loadgen.cli.single_run import carry_out, print_report

    interrupts = Interrupts()
    ended = await interrupts.obeyed(carry_out(settings, interrupts, watch=watch, also=also, show=print_report))
    return ended.code
