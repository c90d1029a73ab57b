"""The live view of a run: a screen that is redrawn on a terminal, lines for a log, or nothing."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from loadgen.cli import output
from loadgen.cli.live.progress_line import (
    LINE_EVERY_S,
    OVERLOADED,
    REDRAWS_PER_S,
    Cadence,
    describe,
)
from loadgen.cli.output import say
from loadgen.config.settings import RunSettings
from loadgen.metrics.progress import DONE, Progress
from loadgen.util.terminal_text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

# `history` and `frame` are imported where they are used: they import the checks, which no worker
# needs to start.


class View:
    """Shows no progress of a run; prints notes.

    Attributes:
        progress: What was shown last.
    """

    def __init__(self) -> None:
        self.progress = Progress("preparing")

    def show(self, progress: Progress) -> None:
        """Show the progress."""
        self.progress = progress

    def note(self, text: str) -> None:
        """Print a line that stays."""
        say(text)


class LineView(View):
    """Prints a line when a phase begins, and every two seconds.

    Args:
        settings: The settings of the run.
        clock: Returns the time in seconds.
    """

    def __init__(self, settings: RunSettings, clock: Callable[[], float] = time.monotonic) -> None:
        from loadgen.cli.live.history import History

        super().__init__()
        self._cadence, self._phase = Cadence(LINE_EVERY_S, clock=clock), ""
        self._history = History(settings)

    def show(self, progress: Progress) -> None:
        """Print a line, if one is due."""
        super().show(progress)
        self._history.add(progress)
        begins, self._phase = progress.phase != self._phase, progress.phase
        if self._cadence.due(begins=begins):
            line = describe(progress, None if progress.phase == DONE else self._history.now())
            self.note(f"{line}; {OVERLOADED}" if self._history.backlog.overloaded else line)


class ScreenView(View):
    """A rich renderable that shows the latest progress.

    Args:
        settings: The settings of the run.
        console: The console on which it is drawn.
    """

    def __init__(self, settings: RunSettings, console: "Console") -> None:
        from loadgen.cli.live.history import History

        super().__init__()
        self._settings, self._console = settings, console
        self._history = History(settings)

    def show(self, progress: Progress) -> None:
        """Keep the progress for the next redraw."""
        super().show(progress)
        self._history.add(progress)

    def note(self, text: str) -> None:
        """Print a line above the screen."""
        self._console.print(f"loadgen: {printable(text)}", markup=False, highlight=False)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["Text"]:
        from loadgen.cli.live.frame import frame

        # The last column and line stay free: terminals differ in what they do once these are
        # written to.
        size = (options.max_width - 1, max(1, console.height - 1))
        yield from frame(
            self._settings, self.progress, self._history, *size, ascii_only=options.ascii_only
        )


@contextlib.contextmanager
def progress_view(settings: RunSettings) -> Iterator[View]:
    """Yield the view that suits the settings and the terminal; a screen is erased on leaving."""
    console = None if settings.quiet or settings.disable_tqdm else output.screen()
    if console is None:
        yield View() if settings.quiet else LineView(settings)
        return
    from rich.live import Live

    screen = ScreenView(settings, console)
    with Live(
        screen,
        console=console,
        refresh_per_second=REDRAWS_PER_S,
        transient=True,
        redirect_stdout=False,
    ):
        yield screen
