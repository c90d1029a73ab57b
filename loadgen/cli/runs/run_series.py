"""A series of runs at one server: each run is shown and saved, and so is the series as a whole."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from loadgen import report
from loadgen.cli import exit_codes, step_summary
from loadgen.cli.live.view import progress_view
from loadgen.cli.runs.interrupts import Interrupts
from loadgen.cli.runs.metrics_endpoint import serve_metrics
from loadgen.cli.runs.single_run import execute, human, say_overwriting
from loadgen.cli.stderr import say
from loadgen.config import output_check
from loadgen.config.output import FILES
from loadgen.config.settings import RunSettings
from loadgen.errors import INTERRUPTED, BadInput, EngineError, LoadgenError
from loadgen.metrics.progress import Progress
from loadgen.report import series_console
from loadgen.report.result.series import Series
from loadgen.runner.participant import Participant
from loadgen.runner.run import serving
from loadgen.runner.run_result import Result
from loadgen.runner.server import Server
from loadgen.util.files import write_atomic
from loadgen.util.terminal_text import Screen

Stop = Callable[[Progress], str | None]


class SeriesRunner:
    """Executes runs at one server, and keeps a point of the series for each.

    Attributes:
        data: The runs that have ended, and what follows from them.
        codes: The exit codes of the runs.
    """

    def __init__(
        self,
        data: Series,  # the series, without runs
        requested: RunSettings,
        plot: str | None,
    ) -> None:
        check_plot(plot)
        output_check.check_writable(requested)
        together = requested.replace(records=None, hlog=None, capture=None, junit=None)  # each run has its own of these
        plotted = [plot] if plot is not None and Path(plot).is_file() else []
        say_overwriting([*output_check.files_to_overwrite(together), *plotted])
        self.data, self._requested, self._plot = data, requested, plot
        self.codes: list[int] = []
        self.interrupts = Interrupts()

    def execute(self, measure: Callable[[Server], Awaitable[None]], first: RunSettings) -> int:
        """Start or probe the server of `first`, let `measure` execute the runs, then print and save the series.

        Raises:
            LoadgenError: The series ended before anything was measured.
        """
        # Returns the most severe exit code of the runs; a LoadgenError of `measure` ends the series.
        with serve_metrics(self._requested) as self._metrics:
            return asyncio.run(self.interrupts.run_interruptible(self._execute(measure, first)))

    async def _execute(self, measure: Callable[[Server], Awaitable[None]], first: RunSettings) -> int:
        try:
            async with self._serving(first) as server:
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

    @contextlib.asynccontextmanager
    async def _serving(self, first: RunSettings) -> AsyncIterator[Server]:
        async with contextlib.AsyncExitStack() as stack:
            with progress_view(first) as view:
                server = await stack.enter_async_context(serving(first, view.show))
            yield server

    async def run(
        self,
        server: Server,  # with the settings of this run resolved for it
        requested: RunSettings,  # the settings of this run as a user would give them
        level: float,  # the load: requests per second, or requests in flight
        *,
        title: str,
        stop: Stop = lambda progress: None,  # returns why the run can end early, or None
        reports: bool = True,
    ) -> Result:
        """Execute one run, and keep its point."""
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

        ended = await execute(
            requested, self.interrupts, server=server, watch=watch, on_server=self._metrics.identify, reports=reports
        )
        saved = [path for path in ended.saved if path != requested.records or self._requested.records]
        result = ended.result
        self.data.points.append(
            report.series.make_point(level, result, result.snapshot, limits=self.data.slo, saved=saved)
        )
        self.codes.append(ended.code)
        self.save_so_far()
        return result

    def say(self, text: str) -> None:
        """Print a line, unless the command is to be quiet."""
        if not self._requested.quiet:
            say(text)

    def save_so_far(self) -> None:
        """Save the series after each run, in case the command dies; `_end` reports if it cannot be written."""
        with contextlib.suppress(OSError):
            self._save()

    def _save(self) -> list[str]:
        path = report.series_path(self._requested, self.data)
        if path is None:
            return []
        write_atomic(path, report.to_json(self.data.to_dict()) + "\n", report.opener_for(self._requested))
        return [str(path)]

    def _end(self) -> int:
        report.series.add_conclusions(self.data)
        saved, trouble = [], None
        try:
            saved = self._save() + self._save_renderings()  # before printing: the reader of a pipe may be gone
        except OSError as error:
            trouble = error
        step_summary.append_result(self.data)
        if self.data.kind == "search":  # its runs print no report that names their files
            saved = [path for point in self.data.points for path in point.saved] + saved
        out = human(self._requested)
        print(series_console.render(self.data, saved=saved, screen=Screen.of(out)), end="", file=out, flush=True)
        if self._requested.json:
            print(report.to_json(self.data.to_dict()), flush=True)
        if trouble is not None:
            say(f"the series could not be saved: {trouble}")
            self.codes.append(exit_codes.INTERNAL)
        return exit_codes.most_severe(self.codes)

    def _save_renderings(self) -> list[str]:
        saved = self._save_plot()
        if self._requested.markdown is not None:
            report.save_markdown(self._requested.markdown, self.data)
            saved.append(self._requested.markdown)
        if self._requested.html is not None:
            report.save_page(self._requested.html, [self.data])
            saved.append(self._requested.html)
        return saved

    def _save_plot(self) -> list[str]:
        if self._plot is None:
            return []
        from loadgen.report import html
        from loadgen.report.run_page.load_curve import load_chart

        chart = load_chart(self.data)
        if chart is None:
            say("--plot: nothing to draw: no run had a successful request")
            return []
        write_atomic(Path(self._plot), html.chart_svg(chart))
        return [self._plot]


def with_numbered_files(requested: RunSettings, number: int) -> RunSettings:
    """Return the settings with output files numbered for one run of a series: r.json becomes r-01.json.

    Devices keep their names, and so does the file of --append-result, which has a line for each run.
    """
    named: dict[str, Any] = {}
    for name in FILES:
        path = getattr(requested, name)
        if path and not path.startswith("/dev/") and not (name == "result_filename" and requested.append_result):
            stem, ending = os.path.splitext(path)
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
