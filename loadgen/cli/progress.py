"""Progress: a bar on a terminal, a line every few seconds elsewhere; drawn by the process that does not measure."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from loadgen.cli.gauge import preparing
from loadgen.settings import RunSettings
from loadgen.terminal import printable

if TYPE_CHECKING:
    from loadgen.progress import Progress

LINE_EVERY_S = 2.0


class View(Protocol):
    """Something that shows how far a run is."""

    measuring: bool

    def show(self, progress: "Progress") -> None:
        """Show it."""

    def note(self, text: str) -> None:
        """Say something once."""


class Silent:
    """Shows nothing but notes."""

    measuring = False

    def show(self, progress: "Progress") -> None:
        """Only remember whether the measurement is under way."""
        self.measuring = progress.measuring

    def note(self, text: str) -> None:
        """A line on stderr."""
        print(f"loadgen: {printable(text)}", file=sys.stderr, flush=True)


class Lines(Silent):
    """A line now and then, for logs."""

    def __init__(self) -> None:
        self._next, self._phase = 0.0, ""

    def show(self, progress: "Progress") -> None:
        """A line if the phase is new or the last one is old."""
        super().show(progress)
        if progress.phase != self._phase or time.monotonic() >= self._next:
            self._phase, self._next = progress.phase, time.monotonic() + LINE_EVERY_S
            self.note(describe(progress))


class Bar(Silent):
    """A bar that rich draws."""

    def __init__(self, bars: Any) -> None:
        self._bars = bars
        self._task = bars.add_task("connecting", total=None)

    def show(self, progress: "Progress") -> None:
        """Move the bar."""
        super().show(progress)
        self._bars.update(
            self._task, description=describe(progress), completed=progress.ended, total=progress.scheduled or None
        )

    def note(self, text: str) -> None:
        """A line above the bar."""
        self._bars.console.print(f"loadgen: {printable(text)}", markup=False, highlight=False)


@contextlib.contextmanager
def progress_view(settings: RunSettings) -> Iterator[View]:
    """The view that the settings and the terminal ask for."""
    if settings.quiet:
        yield Silent()
    elif settings.disable_tqdm or not sys.stderr.isatty():
        yield Lines()
    else:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (BarColumn(bar_width=10), TaskProgressColumn(), TextColumn("{task.description}", markup=False))
        with Bars(*columns, console=Console(stderr=True), refresh_per_second=4, transient=True) as bars:
            yield Bar(bars)


def describe(progress: "Progress") -> str:
    """One line: what is being done and how far it is."""
    if progress.phase == "preparing":
        return preparing(progress.ended, progress.scheduled, progress.elapsed_s)
    if progress.phase == "starting":
        usual = "" if progress.usual_s is None else f" (usually {progress.usual_s:.0f} s)"
        return f"starting the engine {progress.elapsed_s:.0f} s{usual}: {progress.note or 'nothing said yet'}"
    if progress.phase == "waiting":
        return f"waiting for the server {progress.elapsed_s:.0f} s: {progress.note}"
    if not progress.elapsed_s:
        return progress.phase
    failed = progress.ended - progress.ok
    of_all = f" of {progress.scheduled}" if progress.scheduled else ""
    return (
        f"{progress.phase} {progress.elapsed_s:.0f} s: {progress.ended}{of_all} ended, "
        f"{progress.in_flight} in flight, {failed} failed, {progress.output_tokens} tokens"
    )
