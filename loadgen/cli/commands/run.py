"""`loadgen run`: measure a server, once or as a sweep, print the report and save the files."""

import logging
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loadgen.analysis.search.search_check import check_several
from loadgen.cli import flags, run_settings
from loadgen.cli.compat.tool_flags import command_of, places, without_commands
from loadgen.cli.compat.vllm_rs import COMPARE
from loadgen.cli.import_guard import single_threaded
from loadgen.config.load import ALL_PROMPTS, AXES, SWEPT
from loadgen.config.serialize import differences
from loadgen.config.settings import NO_LOAD, RunSettings
from loadgen.config.target import check_server
from loadgen.errors import INTERRUPTED, BadInput, written_as
from loadgen.metrics.progress import PHASES
from loadgen.util import terminal_text
from loadgen.util.forked_child import fork_ahead
from loadgen.workload import endpoints

if TYPE_CHECKING:
    from loadgen.metrics.progress import Progress
    from loadgen.runner.participant import Participant
    from loadgen.runner.server import Server

MAX_QUIET_BURST = 100  # requests; the user is warned of a larger burst
UNITS = {"request_rate": "req/s", "max_concurrency": "requests in flight"}


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    flag_values = flags.run_settings(argv)  # --help ends here, before any slow import
    with written_as(places(flag_values)):
        if (other := command_of(flag_values)) is not None:
            return other_command(*other, flag_values)
        return measure(flag_values)


def measure(flag_values: dict[str, Any]) -> int:
    """Execute the run that these settings ask for, or the several; returns the exit code.

    Args:
        flag_values: What the flags give, by the names of settings.
    """
    plot = flag_values.pop("plot", None)
    swept, runs = run_settings.swept(flag_values)
    for settings in runs:
        check_server(endpoints.checked(settings))
    terminal_text.log_to_stderr(runs[0].log_level)
    if (warning := burstiness_warning(flag_values, runs)) is not None:
        logging.warning(warning)
    no_load = None
    if swept is None and "request_rate" not in run_settings.chosen(flag_values):
        (given,) = runs
        runs = [given.gentle()]
        no_load = NO_LOAD if runs != [given] else None
    runs = list(map(counted, runs))
    run_settings.warn_of_visible(flag_values)
    if swept is not None:
        check_several(runs[0])
        return sweep(runs, swept, plot)
    if plot is not None:
        raise BadInput(
            "--plot", "needs several runs", "give several rates, for example --request-rate 1,2,4,8"
        )
    import asyncio

    fork_children(runs[0])
    from loadgen.cli.runs.metrics_endpoint import serve_metrics
    from loadgen.cli.runs.single_run import run

    warning = no_load or burst_warning(flag_values, runs[0])
    with serve_metrics(runs[0]) as metrics:

        def watch(progress: "Progress", participant: "Participant") -> None:
            nonlocal warning
            first_prompt = progress.phase == "preparing" and progress.ended
            if warning and (
                first_prompt or progress.phase in PHASES
            ):  # the run can start, and nothing has been sent
                logging.warning(warning)
                warning = None
            metrics.update(progress)

        return asyncio.run(run(runs[0], watch=watch, on_server=metrics.identify))


def fork_children(settings: RunSettings) -> None:
    """Fork the processes that a run with these settings needs, each once what it shares with the
    command is imported.

    The event loop has not started yet. A measuring process needs no NumPy, and is forked before it
    is imported; so is the process that parses a tokenizer. The scraper is forked beside them: it
    imports aiohttp while this process imports NumPy, and is then ready to probe the server. The
    next fork is far away, since after each this process copies the pages that it writes to.
    """
    if settings.ray is not None:
        return
    from loadgen.metrics import parted_recorder  # noqa: F401 - what these processes and the command need
    from loadgen.runner import metrics_scraper, metrics_scraper_main, workers  # noqa: F401 - the same
    from loadgen.workload import draws, request_store  # noqa: F401 - the same

    fork_ahead(metrics_scraper.MODULE)
    for _ in range(workers.worker_count(settings)):
        fork_ahead(workers.MODULE)
    from loadgen.runner import facts_main  # what the facts, the preparer and the command need

    if (path := facts_main.unknown_file(settings)) is not None:
        fork_ahead(facts_main.MODULE, os.fsencode(path) + b"\n")
    with single_threaded():
        # Here, and not within other imports: beyond 16 kB of frames, CPython 3.11 takes memory from
        # the system at a call, and returns it after the call. NumPy's imports did so 800 times.
        import numpy as np  # noqa: F401

        from loadgen.runner import preparer

        fork_ahead(preparer.MODULE)


def counted(settings: RunSettings) -> RunSettings:
    """Return settings with the number of prompts that a file has, if they ask for all, or for no
    repetition.

    Raises:
        BadInput: The file cannot be used, or the data set has none.
    """
    if settings.num_prompts != ALL_PROMPTS and not settings.no_oversample:
        return settings
    from loadgen.workload.datasets.prompt_count import with_known_count

    return with_known_count(settings)


def other_command(command: str, value: Any, flag_values: dict[str, Any]) -> int:
    """Carry out the command that a flag of another tool stands for; returns its exit code.

    Args:
        command: Its name.
        value: The value of the flag.
        flag_values: What the flags give, by the names of settings.

    Raises:
        BadInput: As the command raises.
    """
    if command == COMPARE:
        from loadgen.cli.commands import compare

        return compare.main(value)
    from loadgen.cli.commands import dataset

    _, runs = run_settings.swept(without_commands(flag_values))
    return dataset.show(endpoints.checked(runs[0]))


def burst_warning(flag_values: dict[str, Any], settings: RunSettings) -> str | None:
    """Return a warning if a server of the user's is about to get many requests at once without a
    flag that says so.

    Args:
        flag_values: What the flags give, by the names of settings; a config file counts as
            intended.
        settings: The settings of the run.
    """
    from loadgen.workload.arrivals import DEFAULT_COUNT

    count = settings.requests_of(settings.num_prompts or DEFAULT_COUNT)
    intended = (
        "request_rate" in flag_values or "config" in flag_values or settings.engine is not None
    )
    bounded = (
        settings.max_concurrency is not None or settings.rate_changes or settings.timed_by_data
    )
    if intended or bounded or math.isfinite(settings.request_rate) or count <= MAX_QUIET_BURST:
        return None
    remedy = (
        "to spread them, give --rate N or --max-concurrency N; if this is intended, give --rate inf"
    )
    return f"all {count} requests will be sent at once; {remedy}"


def burstiness_warning(flag_values: dict[str, Any], runs: Sequence[RunSettings]) -> str | None:
    """Return a warning if --burstiness is given without a rate: `vllm bench serve` ignores it, too.

    Args:
        flag_values: What the flags give, by the names of settings.
        runs: The settings of each run.
    """
    paced = any(math.isfinite(run.request_rate) or run.rate_changes for run in runs)
    if flag_values.get("burstiness", 1.0) == 1.0 or paced:
        return None
    return "--burstiness has no effect without a rate: give --request-rate, or leave it out"


def sweep(runs: Sequence[RunSettings], name: str, plot: str | None) -> int:
    """Execute runs that differ in one setting at the same server; returns the most severe exit
    code.

    Args:
        runs: Their checked settings.
        name: The setting that differs, one of SWEPT.
        plot: The path of the chart, or None.

    Raises:
        LoadgenError: The sweep ended before anything was measured.
    """
    from msgspec import structs

    with single_threaded():
        from loadgen.cli.runs.run_series import SeriesRunner, with_numbered_files
        from loadgen.report import load_line
        from loadgen.report.result.series import Series
    first = runs[0]
    load = (
        load_line.text_of_settings(first)
        if len({getattr(run, name) for run in runs}) == 1
        else None
    )
    data = Series(
        kind="sweep",
        over=AXES[SWEPT.index(name)],
        load=load,
        slo=first.slo,
        latency_from=first.latency_from,
    )
    series = SeriesRunner(data, first, plot)

    async def measure(server: "Server") -> None:
        for number, requested in enumerate(runs, 1):
            resolved = server.settings.replace(
                **differences(
                    with_numbered_files(runs[0], 1), with_numbered_files(requested, number)
                )
            )
            level = getattr(requested, name)
            at = load or f"{level:g} {UNITS[name]}"
            title = f"run {number} of {len(runs)}: {at}"
            run_server = structs.replace(server, settings=resolved)
            settings = with_numbered_files(requested, number)
            await series.run(run_server, settings, level, title=title, row=at)
            if series.interrupts.count:
                series.data.partial = INTERRUPTED
                break

    return series.execute(measure, with_numbered_files(runs[0], 1))
