"""A series of runs at one server, a sweep or a search: each run is shown and saved, and so is
the series as a whole.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from loadgen import report
from loadgen.analysis.search.algorithm import End
from loadgen.analysis.search.early_stop import StopRule
from loadgen.analysis.search.load_search import LoadSearch
from loadgen.cli import exit_codes
from loadgen.cli.live.view import progress_view
from loadgen.cli.output import append_result_summary, say
from loadgen.cli.runs.interrupts import Interrupts
from loadgen.cli.runs.journal import journal
from loadgen.cli.runs.metrics_endpoint import serve_metrics
from loadgen.cli.runs.single_run import execute, human, print_report, say_overwriting
from loadgen.config import output_check
from loadgen.config.load import AxisName
from loadgen.config.output import FILES
from loadgen.config.serialize import differences
from loadgen.config.settings import RunSettings
from loadgen.errors import INTERRUPTED, BadInput, EngineError, LoadgenError
from loadgen.metrics.progress import Progress
from loadgen.report import render_series
from loadgen.report.result.series import Series
from loadgen.report.run_state import MAX_NAMED
from loadgen.runner.participant import Participant
from loadgen.runner.run import serving
from loadgen.runner.run_result import Result
from loadgen.runner.server import Server
from loadgen.util import files
from loadgen.util.files import write_atomic
from loadgen.util.number_format import first_of, plural
from loadgen.util.terminal_text import Screen

Stop = Callable[[Progress], str | None]
DEVICES = "/dev/"


class SeriesRunner:
    """Executes runs at one server, and keeps a point of the series for each.

    Args:
        data: The series, without runs.
        requested: The checked settings of the command.
        plot: The path of the chart, or None.

    Attributes:
        data: The runs that have ended, and what follows from them.
        codes: The exit codes of the runs.
        interrupts: Receives the signals.

    Raises:
        BadInput: A file cannot be written.
    """

    def __init__(self, data: Series, requested: RunSettings, plot: str | None) -> None:
        check_plot(plot)
        output_check.check_writable(requested)
        # Each run has its own of these.
        together = requested.replace(records=None, hlog=None, capture=None, junit=None)
        plotted = [plot] if plot is not None and Path(plot).is_file() else []
        say_overwriting([*output_check.files_to_overwrite(together), *plotted])
        self.data, self._requested, self._plot = data, requested, plot
        self.codes: list[int] = []
        self.interrupts = Interrupts()

    def execute(self, measure: Callable[[Server], Awaitable[None]], first: RunSettings) -> int:
        """Start or probe the server, let `measure` execute the runs, then print and save the
        series.

        Args:
            measure: Executes the runs; a LoadgenError ends the series.
            first: The settings by which the server is found.

        Returns:
            The most severe exit code of the runs.

        Raises:
            LoadgenError: The series ended before anything was measured.
        """
        with serve_metrics(self._requested) as self._metrics:
            return asyncio.run(self.interrupts.run_interruptible(self._execute(measure, first)))

    async def _execute(
        self, measure: Callable[[Server], Awaitable[None]], first: RunSettings
    ) -> int:
        try:
            async with contextlib.AsyncExitStack() as stack:
                with progress_view(first) as view:
                    server = await stack.enter_async_context(serving(first, view.show))
                await measure(server)
        except (asyncio.CancelledError, LoadgenError) as error:
            if not self.data.points:
                raise
            self.data.partial = INTERRUPTED if self.interrupts.count else str(error)
            if isinstance(error, EngineError):
                self.codes.append(exit_codes.INTERNAL)
        if self.interrupts.count:
            self.codes.append(exit_codes.INTERRUPTED)
        return self._end()

    async def run(
        self,
        server: Server,
        requested: RunSettings,
        level: float,
        *,
        title: str,
        stop: Stop = lambda progress: None,
        row: str | None = None,
    ) -> Result:
        """Execute one run, and keep its point.

        Args:
            server: The server, with the settings of this run resolved for it.
            requested: The settings of this run as a user would give them.
            level: The load: requests per second, or requests in flight.
            title: The line that is printed before the run.
            stop: Returns why the run can end early, or None.
            row: Begins the line that is printed once the run has ended; None: there is none.

        Raises:
            CancelledError: A signal came since the previous run ended.
            LoadgenError: The run failed.
        """
        self.interrupts.detach()
        if self.interrupts.count:  # since the previous run ended
            raise asyncio.CancelledError
        if self.data.points:
            self.data.notes += await server.flush()
        self.say(title)

        def watch(progress: Progress, participant: Participant) -> None:
            self._metrics.update(progress)
            if (why := stop(progress)) is not None:
                participant.abort(why)

        finished = await execute(
            requested,
            self.interrupts,
            server=server,
            watch=watch,
            on_server=self._metrics.identify,
            show=partial(self._show, row),
        )
        saved = [
            path for path in finished.saved if path != requested.records or self._requested.records
        ]
        result = finished.result
        self.data.points.append(
            report.series.make_point(
                level, result, result.snapshot, limits=self.data.slo, saved=saved
            )
        )
        self.codes.append(finished.code)
        self.save_so_far()
        return result

    def _show(self, row: str | None, result: Result, saved: list[str]) -> None:
        """Print a run that has ended: its report where it was asked for, else a line."""
        if self._requested.brief or self._requested.full:
            print_report(self._requested, result, saved)
        elif row is not None and not self._requested.quiet:
            print(f"{row}: {report.summary_line(result)}", file=human(self._requested), flush=True)

    def say(self, text: str) -> None:
        """Print a line, unless the command is to be quiet."""
        if not self._requested.quiet:
            say(text)

    def save_so_far(self) -> None:
        """Save the series after each run, in case the command dies; `_end` reports if it cannot
        be written.
        """
        with contextlib.suppress(OSError):
            self._save()

    def _save(self) -> list[str]:
        path = report.series_path(self._requested, self.data)
        if path is None:
            return []
        write_atomic(
            path, report.to_json(self.data.to_dict()) + "\n", report.opener_for(self._requested)
        )
        return [str(path)]

    def _end(self) -> int:
        report.series.add_conclusions(self.data)
        saved, trouble = [], None
        try:
            # Before printing: the reader of a pipe may be gone.
            saved = self._save()
            if self._plot is not None:
                from loadgen.document import page_writer
                from loadgen.report.run_page.load_curve import load_chart

                chart = load_chart(self.data)
                if chart is None:
                    say("--plot: nothing to draw: no run had a successful request")
                else:
                    write_atomic(Path(self._plot), page_writer.chart_svg(chart))
                    saved.append(self._plot)
            if self._requested.markdown is not None:
                report.save_markdown(self._requested.markdown, self.data)
                saved.append(self._requested.markdown)
            if self._requested.html is not None:
                report.save_page(self._requested.html, [self.data])
                saved.append(self._requested.html)
        except OSError as error:
            trouble = error
        append_result_summary(self.data)
        files = [path for point in self.data.points for path in point.saved]
        if files:
            runs = plural(len(self.data.points), "run")
            # Those of a search are in one folder.
            folder = f"{os.path.dirname(files[0])}/"
            where = folder if self.data.kind == "search" else first_of(files, MAX_NAMED)
            saved.append(f"{where}: the files of {runs}")
        out = human(self._requested)
        print(
            render_series(
                self.data,
                is_brief=self._requested.quiet,
                saved=() if self._requested.quiet else saved,
                screen=Screen.of(out),
            ),
            end="",
            file=out,
            flush=True,
        )
        if self._requested.json:
            print(report.to_json(self.data.to_dict()), flush=True)
        if trouble is not None:
            say(f"the series could not be saved: {trouble}")
            self.codes.append(exit_codes.INTERNAL)
        return exit_codes.most_severe(self.codes)


class SearchSeries:
    """The series of runs of one search.

    Args:
        requested: The checked settings of the command.
        over: rate or concurrency.
        chosen: The settings from flags and the config file, without the workload's.
        plot: The path of the chart, or None.

    Raises:
        BadInput: The search cannot have a setting, or a file cannot be written.
    """

    def __init__(
        self, requested: RunSettings, over: AxisName, chosen: dict[str, Any], plot: str | None
    ) -> None:
        if requested.records and requested.records.startswith(DEVICES):
            raise BadInput(
                "--records",
                f"{requested.records} is a device, and a search reads its records again",
                "name a file",
            )
        if requested.saves_result and not requested.result_filename:
            name = f"{requested.label or requested.backend}-search-{time.strftime('%Y%m%d-%H%M%S')}"
            requested = requested.replace(result_filename=f"{name}.json")
        self._search = LoadSearch(requested, over, chosen)
        self._requested = self._search.settings
        names = [getattr(requested, name) for name in _of_runs(requested)]
        first = next(iter(names), "search")
        self._folder = Path(requested.result_dir or ".") / Path(first).with_suffix("")
        self._series = SeriesRunner(self._search.data, requested, plot)

    def execute(self) -> int:
        """Execute the search; returns the exit code."""
        return self._series.execute(self._measure, self._search.first_settings)

    async def _measure(self, server: Server) -> None:
        async def measure(settings: RunSettings, name: str, stop: StopRule) -> Result:
            files = differences(self._requested, self._with_next_files()) | {
                "records": settings.records
            }
            resolved = settings.replace(**files)
            requested = self._requested.replace(**differences(server.settings, resolved))
            level = self._search.level_of(resolved)
            title = f"run {len(self._series.data.points) + 1}, {self._search.level_text(level)}"
            run_server = structs.replace(server, settings=resolved)
            return await self._series.run(run_server, requested, level, title=title, stop=stop)

        try:
            await self._search.execute(
                server.settings, measure, self._records, self._series.say, self._series.save_so_far
            )
        finally:
            # By the outcome of the search, and by the runs at the level that it found.
            outcome, level = self._search.outcome, self._search.found_level
            codes = [exit_codes.SLO_MISSED] if outcome and outcome.end is End.NONE else []
            knows_nothing = outcome is not None and outcome.end is End.DISTURBED and not level
            if outcome is None or outcome.end is End.CLIENT or knows_nothing:
                codes.append(
                    exit_codes.ERRORS
                    if exit_codes.ERRORS in self._series.codes
                    else exit_codes.INVALID
                )
            rows = [row for row in self._series.data.points if level and row.level == level]
            if self._requested.strict and any(row.verdict == "SUSPECT" for row in rows):
                codes.append(exit_codes.SUSPECT)
            # The codes of other runs do not count: at a level that is too high, requests may well
            # fail.
            of_levels = (exit_codes.SUSPECT, exit_codes.ERRORS)
            self._series.codes[:] = [
                code for code in self._series.codes if code not in of_levels
            ] + codes

    def _with_next_files(self) -> RunSettings:
        number = len(self._series.data.points) + 1
        return with_files_in(self._folder, self._requested, number)

    @contextlib.contextmanager
    def _records(self, name: str) -> Iterator[Path]:
        """Yield the path of the next run's records: the user's file, or one that is removed once
        they are judged.
        """
        if self._requested.records:
            yield Path(str(self._with_next_files().records))
            return
        with journal(enabled=True) as crash_journal, files.scratch_folder() as folder:
            yield crash_journal.path or folder / name
            crash_journal.needed = False


def with_files_in(folder: Path, requested: RunSettings, number: int) -> RunSettings:
    """Return the settings with the files of one run of a series in a folder, which is made: r.json
    becomes FOLDER/01-r.json. Devices and the file of --append-result stay where they are.
    """
    named: dict[str, Any] = {}
    for name in _of_runs(requested):
        file = f"{number:02}-{Path(getattr(requested, name)).name}"
        folder.mkdir(parents=True, exist_ok=True)
        if name == "result_filename":
            named |= {"result_dir": str(folder), name: file}
        else:
            named[name] = str(folder / file)
    return requested.replace(**named)


def _of_runs(requested: RunSettings) -> Iterator[str]:
    """List the settings that name a file of which each run has its own."""
    for name in FILES:
        path = getattr(requested, name)
        if (
            path
            and not path.startswith(DEVICES)
            and not (name == "result_filename" and requested.append_result)
        ):
            yield name


def with_numbered_files(requested: RunSettings, number: int) -> RunSettings:
    """Return the settings with output files numbered for one run of a series: r.json becomes
    r-01.json.

    Devices keep their names, and so does the file of --append-result, which has a line for each
    run.
    """
    named: dict[str, Any] = {}
    for name in _of_runs(requested):
        stem, ending = os.path.splitext(getattr(requested, name))
        named[name] = f"{stem}-{number:02}{ending}"
    return requested.replace(**named)


def check_plot(path: str | None) -> None:
    """Check the path of --plot.

    Raises:
        BadInput: It does not end in .svg, or cannot be written.
    """
    if path is None:
        return
    if not path.endswith(".svg"):
        raise BadInput("--plot", f"{path!r} does not end in .svg", "write FILE.svg")
    if not os.access(Path(path).resolve().parent, os.W_OK) or Path(path).is_dir():
        raise BadInput("--plot", f"{path} cannot be written", "choose another path")
