"""`loadgen run`: measure a server, once or as a sweep, print the report and save the files."""

import dataclasses
import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loadgen.cli import credentials, flags, run_settings
from loadgen.cli.compat.tool_flags import command_of, flags_as_written, without_commands
from loadgen.cli.compat.vllm_rs import COMPARE
from loadgen.config.load import ALL_PROMPTS, AXES, SWEPT
from loadgen.config.settings import RunSettings
from loadgen.errors import INTERRUPTED, BadInput
from loadgen.util import terminal_text

if TYPE_CHECKING:
    from loadgen.metrics.progress import Progress
    from loadgen.runner.participant import Participant
    from loadgen.runner.server import Server

MAX_QUIET_BURST = 100  # requests; the user is warned of a larger burst
UNITS = {"request_rate": "requests/s", "max_concurrency": "requests in flight"}


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    given = flags.run_settings(argv)  # --help ends here, before any slow import
    with flags_as_written(given):
        if (other := command_of(given)) is not None:
            return other_command(*other, given)
        return measure(given)


def measure(given: dict[str, Any]) -> int:
    """Execute the run that these settings ask for, or the several; returns the exit code.

    Args:
        given: What the flags give, by the names of settings.
    """
    plot = given.pop("plot", None)
    swept, runs = run_settings.swept(given)
    from loadgen.workload import endpoints

    for settings in runs:
        endpoints.checked(settings)
    terminal_text.log_to_stderr(runs[0].log_level)
    if (warning := burstiness_warning(given, runs)) is not None:
        logging.warning(warning)
    runs = list(map(counted, runs))
    credentials.warn_of_visible(given)
    if swept is not None:
        from loadgen.analysis.search.search_check import check_several

        check_several(runs[0])
        return sweep(runs, swept, plot)
    if plot is not None:
        raise BadInput("--plot", "needs several runs", "give several rates, for example --request-rate 1,2,4,8")
    import asyncio

    from loadgen.cli.runs.children import fork_children

    fork_children(runs[0])
    from loadgen.cli.runs.metrics_endpoint import serve_metrics
    from loadgen.cli.runs.single_run import run
    from loadgen.metrics.progress import PHASES

    warning = burst_warning(given, runs[0])
    with serve_metrics(runs[0]) as metrics:

        def watch(progress: "Progress", participant: "Participant") -> None:
            nonlocal warning
            first_prompt = progress.phase == "preparing" and progress.ended
            if warning and (first_prompt or progress.phase in PHASES):  # the run can start, and nothing has been sent
                logging.warning(warning)
                warning = None
            metrics.update(progress)

        return asyncio.run(run(runs[0], watch=watch, on_server=metrics.identify))


def counted(settings: RunSettings) -> RunSettings:
    """Return settings with the number of prompts that a file has, if they ask for all, or for no repetition.

    Raises:
        BadInput: The file cannot be used, or the data set has none.
    """
    if settings.num_prompts != ALL_PROMPTS and not settings.no_oversample:
        return settings
    from loadgen.workload.datasets.prompt_count import with_known_count

    return with_known_count(settings)


def other_command(command: str, value: Any, given: dict[str, Any]) -> int:
    """Carry out the command that a flag of another tool stands for; returns its exit code."""
    if command == COMPARE:
        from loadgen.cli.commands import compare

        return compare.main(value)
    from loadgen.cli.commands import dataset
    from loadgen.workload import endpoints

    _, runs = run_settings.swept(without_commands(given))
    return dataset.show(endpoints.checked(runs[0]))


def burst_warning(given: dict[str, Any], settings: RunSettings) -> str | None:
    """Return a warning if a server of the user's is about to get many requests at once without a flag that says so.

    Args:
        given: What the flags give, by the names of settings; a config file counts as intended.
        settings: The settings of the run.
    """
    from loadgen.config.target import wants_engine
    from loadgen.workload.arrivals import DEFAULT_COUNT

    count = settings.requests_of(settings.num_prompts or DEFAULT_COUNT)
    intended = "request_rate" in given or "config" in given or wants_engine(settings)
    bounded = settings.max_concurrency is not None or settings.rate_changes or settings.timed_by_data
    if intended or bounded or math.isfinite(settings.request_rate) or count <= MAX_QUIET_BURST:
        return None
    remedy = "to spread them, give --rate N or --max-concurrency N; if this is intended, give --rate inf"
    return f"all {count} requests will be sent at once; {remedy}"


def burstiness_warning(given: dict[str, Any], runs: Sequence[RunSettings]) -> str | None:
    """Return a warning if --burstiness is given without a rate: `vllm bench serve` ignores it, too.

    Args:
        given: What the flags give, by the names of settings.
        runs: The settings of each run.
    """
    paced = any(math.isfinite(run.request_rate) or run.rate_changes for run in runs)
    if given.get("burstiness", 1.0) == 1.0 or paced:
        return None
    return "--burstiness has no effect without a rate: give --request-rate, or leave it out"


def sweep(runs: Sequence[RunSettings], name: str, plot: str | None) -> int:
    """Execute runs that differ in the setting `name`, at the same server; returns the most severe exit code."""
    from loadgen.cli.import_guard import single_threaded

    with single_threaded():
        from loadgen.cli.runs.run_series import SeriesRunner, with_numbered_files
        from loadgen.report import load_line
        from loadgen.report.result.series import Series
    from loadgen.config.serialize import differences

    first = runs[0]
    load = load_line.text_of_settings(first) if len({getattr(run, name) for run in runs}) == 1 else None
    data = Series(kind="sweep", over=AXES[SWEPT.index(name)], load=load, slo=first.slo, latency_from=first.latency_from)
    series = SeriesRunner(data, first, plot)

    async def measure(server: "Server") -> None:
        for number, requested in enumerate(runs, 1):
            resolved = server.settings.replace(
                **differences(with_numbered_files(runs[0], 1), with_numbered_files(requested, number))
            )
            level = getattr(requested, name)
            title = f"run {number} of {len(runs)}: {load or f'{level:g} {UNITS[name]}'}"
            own = dataclasses.replace(server, settings=resolved)
            await series.run(own, with_numbered_files(requested, number), level, title=title)
            if series.interrupts.count:
                series.data.partial = INTERRUPTED
                break

    return series.execute(measure, with_numbered_files(runs[0], 1))
