"""The search for the highest load that meets an SLO, in the caller's event loop or in one of its
own.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from loadgen import report
from loadgen.analysis.search.early_stop import StopRule
from loadgen.analysis.search.load_search import LoadSearch
from loadgen.analysis.search.search_check import check_chosen, check_requested
from loadgen.config.load import AxisName
from loadgen.config.option import check_type
from loadgen.config.serialize import differences
from loadgen.config.settings import RunSettings
from loadgen.errors import LoadgenError
from loadgen.library.accepted import accepted_for_series, check_callback
from loadgen.library.run import OnProgress, ignore, synchronous
from loadgen.library.saved_files import SavedSeries
from loadgen.metrics.progress import Progress
from loadgen.report.result.series import Point
from loadgen.runner import run as runner
from loadgen.runner.coordinator import open_participant
from loadgen.runner.run_result import Result
from loadgen.runner.server import Server
from loadgen.util import files

OnPoint = Callable[[Point], None]


async def search(
    settings: RunSettings,
    *,
    over: AxisName = "rate",
    on_progress: OnProgress = ignore,
    on_point: OnPoint = ignore,
) -> SavedSeries:
    """Find the highest request rate, or concurrency, at which a server meets the limits of
    `settings.slo`.

    The runs are those of `loadgen search` (docs/search.md). `request_rate`, or `max_concurrency`,
    is the first level; `duration` the length of each run; `num_prompts` its requests. By default
    the search chooses them.

    Args:
        settings: What to measure, with `slo`. Settings that name output files are refused.
        over: rate or concurrency.
        on_progress: Called a few times a second with the progress of the run that goes on.
        on_point: Called with each run that has ended.

    Returns:
        The runs, the levels that were tried, and `found`: `found.level` is the highest level that
            meets the limits, in
        requests/s or requests in flight, None if none does. `partial` says why the search ended
        early, if it did.

    Raises:
        BadInput: A setting cannot be used, or a search varies it itself; nothing was sent.
        Unreachable: No server where the settings say.
        LoadgenError: The first run shows nothing about the server.
    """
    check_type("settings", settings, RunSettings, "give a RunSettings")
    check_callback("on_progress", on_progress)
    check_callback("on_point", on_point)
    chosen = differences(RunSettings(), settings)
    check_chosen(chosen, over)
    check_requested(settings)
    # A duration needs a finite rate, which a search chooses.
    checked = accepted_for_series(settings.replace(duration=None)).replace(
        duration=settings.duration
    )
    runs = LoadSearch(checked, over, chosen)
    async with runner.serving(runs.first_settings, on_progress) as server:
        try:
            await _execute(runs, server, on_progress, on_point)
        except LoadgenError as error:
            if not runs.data.points:
                raise
            runs.data.partial = str(error)
    report.series.add_conclusions(runs.data)
    return SavedSeries.from_dict(runs.data.to_dict())


search_sync = synchronous(search)


async def _execute(
    runs: LoadSearch, server: Server, on_progress: OnProgress, on_point: OnPoint
) -> None:
    data, reported = runs.data, 0

    async def measure(settings: RunSettings, name: str, stop: StopRule) -> Result:
        if data.points:
            data.notes += await server.flush()
        requested = runs.settings.replace(**differences(server.settings, settings)).checked()
        async with open_participant(requested, own_loop=True) as participant:

            def watch(progress: Progress) -> None:
                on_progress(progress)
                if (why := stop(progress)) is not None:
                    participant.abort(why)

            at_level = replace(server, settings=settings)
            result = await runner.run(
                requested, server=at_level, on_progress=watch, participant=participant
            )
        level = runs.level_of(settings)
        data.points.append(
            report.series.make_point(level, result, result.snapshot, limits=data.slo, saved=[])
        )
        return result

    @contextlib.contextmanager
    def records(name: str) -> Iterator[Path]:
        with files.scratch_folder() as folder:  # removed once the records are judged
            yield folder / name

    def report_points() -> None:
        nonlocal reported
        for point in data.points[reported:]:
            on_point(point)
        reported = len(data.points)

    await runs.execute(server.settings, measure, records, on_level=report_points)
