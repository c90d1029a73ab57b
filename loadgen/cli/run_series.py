"""Series: the runs of one command at one server: shown and saved one by one, and together."""

import asyncio
import contextlib
import dataclasses
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.cli import exit_codes
from loadgen.cli.import_guard import single_threaded
from loadgen.cli.interrupts import Interrupts
from loadgen.cli.live.view import progress_view
from loadgen.cli.metrics_endpoint import exporting
from loadgen.cli.single_run import carry_out, human, print_text, say_overwriting
from loadgen.config.output import FILES
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, EngineError, LoadgenError

if TYPE_CHECKING:
    from loadgen.metrics.progress import Progress
    from loadgen.report.result.latencies import Clock
    from loadgen.report.result.series import Axis, Kind, Point
    from loadgen.runner.coordinator import Measurer
    from loadgen.runner.run_result import Result
    from loadgen.runner.server import Server

Stop = Callable[["Progress"], str | None]
Show = Callable[[RunSettings, "Result", list[str]], None]


class Series:
    """Runs at one server, whose points are kept as they end.

    Args:
        kind: sweep or search.
        over: rate or concurrency.
        asked: The settings of the command, checked.
        slo: What the runs are held against.
        plot: Where a picture of it goes.

    Attributes:
        data: The runs that have ended, and what follows from them.
        codes: The exit codes that the runs deserve.
        interrupts: What a Ctrl-C is told to.
    """

    def __init__(self, kind: "Kind", over: "Axis", asked: RunSettings, slo: str | None, plot: str | None) -> None:
        with single_threaded():
            from loadgen import report
            from loadgen.report.result import series
            from loadgen.runner import run as runner  # noqa: F401 - what a run needs, imported once

        check_plot(plot)
        report.check_writable(asked)
        together = asked.replace(records=None, hlog=None, capture=None)  # of which each run has its own
        plotted = [plot] if plot is not None and Path(plot).is_file() else []
        say_overwriting([*report.overwritten(together), *plotted])
        self._asked, self._plot = asked, plot
        self.codes: list[int] = []
        self.interrupts = Interrupts()
        clock: Clock = "due" if asked.latency_from == "due" else "sent"
        self.data = series.Series(kind=kind, over=over, slo=slo, latency_from=clock)

    @property
    def points(self) -> "list[Point]":
        """The runs that have ended."""
        return self.data.points

    def carried_out(self, measure: "Callable[[Server], Awaitable[None]]", first: RunSettings) -> int:
        """Start or ask the server, measure it as often as `measure` wants, print the whole and save it.

        Args:
            measure: Carries out the runs; a LoadgenError ends them.
            first: The settings of a run, by which the server is found.

        Returns:
            The gravest exit code that the runs deserve.

        Raises:
            LoadgenError: It ended before anything was measured.
        """
        with exporting(self._asked) as self._export:
            return asyncio.run(self.interrupts.obeyed(self._carried_out(measure, first)))

    async def _carried_out(self, measure: "Callable[[Server], Awaitable[None]]", first: RunSettings) -> int:
        try:
            async with self._serving(first) as server:
                await measure(server)
        except (asyncio.CancelledError, LoadgenError) as error:
            if not self.points:
                raise
            self.data.partial = "interrupted" if self.interrupts.heard else str(error)
            if isinstance(error, EngineError):
                self.codes.append(exit_codes.INTERNAL)
        if self.interrupts.heard:
            self.codes.append(exit_codes.INTERRUPTED)
        return self._end()

    @contextlib.asynccontextmanager
    async def _serving(self, first: RunSettings) -> "AsyncIterator[Server]":
        from loadgen.runner.run import serving

        async with contextlib.AsyncExitStack() as stack:
            with progress_view(first) as view:
                server = await stack.enter_async_context(serving(first, view.show))
            yield server

    async def run(
        self,
        server: "Server",
        asked: RunSettings,
        level: float,
        *,
        title: str,
        stop: Stop = lambda progress: None,
        show: Show = print_text,
    ) -> "Result":
        """Carry out one run, and keep its point.

        Args:
            server: Who is measured, with the settings of this run as they are for it.
            asked: The settings of this run as they would be given.
            level: Of the load.
            title: What it is, in a few words.
            stop: Tells why it need not go on, if so.
            show: What prints its report.
        """
        from loadgen import report

        self.interrupts.rest()
        if self.interrupts.heard:  # as the run before came to its end
            raise asyncio.CancelledError
        if self.points:
            await self._flush(server)
        if not asked.quiet:
            print(f"loadgen: {title}", file=sys.stderr, flush=True)

        def watch(progress: "Progress", measurer: "Measurer") -> None:
            self._export(progress)
            if (why := stop(progress)) is not None:
                measurer.abort(why)

        ended = await carry_out(asked, self.interrupts, server=server, watch=watch, show=show)
        saved = [path for path in ended.saved if path != asked.records or self._asked.records]
        result = ended.result
        self.points.append(report.series.point(level, result, result.snapshot, limits=self.data.slo, saved=saved))
        self.codes.append(ended.code)
        self.save_so_far()
        return result

    async def _flush(self, server: "Server") -> None:
        """Empty the caches of engines that were started for this: the prompts of a small data set come again."""
        for process in server.processes:
            try:
                await asyncio.to_thread(process.flush)
            except EngineError as error:
                self.data.notes.append(str(error))

    def save_so_far(self) -> None:
        """Write what there is, in case nothing else will; that it cannot be written is told in the end."""
        with contextlib.suppress(OSError):
            self._save()

    def _save(self) -> list[str]:
        """Write the whole as far as it is, where that was asked for; returns the paths."""
        from loadgen import report
        from loadgen.util.atomic_file import write_whole

        path = report.series_path(self._asked, self.data)
        if path is None:
            return []
        write_whole(path, report.to_json(self.data.to_dict()) + "\n", report.opener_of(self._asked))
        return [str(path)]

    def _end(self) -> int:
        from loadgen import report

        report.series.conclude(self.data)
        saved, trouble = [], None
        try:
            saved = self._save() + self._drawn() + self._paged()  # first: whoever reads us may be gone
        except OSError as error:
            trouble = error
        if self.data.kind == "search":  # its runs have no report that would have said so
            saved = [path for point in self.points for path in point.saved] + saved
        text = report.series.render(self.data) + "".join(f"Saved: {path}\n" for path in saved)
        print(text, end="", file=human(self._asked), flush=True)
        if self._asked.json:
            print(report.to_json(self.data.to_dict()), flush=True)
        if trouble is not None:
            print(f"loadgen: the whole could not be saved: {trouble}", file=sys.stderr)
            self.codes.append(exit_codes.INTERNAL)
        return exit_codes.gravest(self.codes)

    def _drawn(self) -> list[str]:
        if self._plot is None:
            return []
        from loadgen.report import html
        from loadgen.report.run_page.load_curve import curve
        from loadgen.util.atomic_file import write_whole

        chart = curve(self.data)
        if chart is None:
            print("loadgen: --plot: there is nothing to draw, since no run had an answer", file=sys.stderr)
            return []
        write_whole(Path(self._plot), html.drawn(chart))
        return [self._plot]

    def _paged(self) -> list[str]:
        if self._asked.html is None:
            return []
        from loadgen import report

        report.save_page(self._asked.html, [self.data])
        return [self._asked.html]


def differences(one: RunSettings, other: RunSettings) -> dict[str, Any]:
    """The fields in which the other differs, with its values."""
    each = (field.name for field in dataclasses.fields(RunSettings))
    return {name: getattr(other, name) for name in each if getattr(other, name) != getattr(one, name)}


def numbered(asked: RunSettings, number: int) -> RunSettings:
    """The settings with files of its own for one of several runs: r.json becomes r-01.json; devices stay.

    With --append-result, a line of one file is a file of its own.
    """
    named: dict[str, str] = {}
    for name in FILES:
        path = getattr(asked, name)
        if path and not path.startswith("/dev/") and not (name == "result_filename" and asked.append_result):
            stem, ending = os.path.splitext(path)
            named[name] = f"{stem}-{number:02}{ending}"
    return asked.replace(**named)


def check_plot(path: str | None) -> None:
    """Refuse, before anything is sent, a picture that could not be drawn.

    Raises:
        BadInput: Naming the flag.
    """
    if path is None:
        return
    if not path.endswith(".svg"):
        raise BadInput("--plot", f"{path!r} is no name of a picture", "write FILE.svg")
    if not os.access(Path(path).resolve().parent, os.W_OK) or Path(path).is_dir():
        raise BadInput("--plot", f"{path} cannot be written", "name another")
