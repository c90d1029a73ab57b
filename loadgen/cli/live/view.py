"""Live: how a run is shown while it goes on: as a frame that is drawn again and again, as lines, or not at all."""

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from loadgen.cli.live.cadence import REDRAWS_PER_S
from loadgen.cli.live.log_lines import Lines, Silent, View
from loadgen.cli.live.pace import History
from loadgen.config.settings import RunSettings
from loadgen.metrics.progress import PHASES, Progress
from loadgen.util.terminal_text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text


class Screen(Silent):
    """What rich draws again and again in one place.

    Args:
        settings: Of the run.
        console: Where to.
    """

    def __init__(self, settings: RunSettings, console: "Console") -> None:
        self._settings, self._console = settings, console
        self._progress, self._history = Progress(PHASES[0]), History()

    def show(self, progress: Progress) -> None:
        """Draw this the next time."""
        super().show(progress)
        self._history.add(progress)
        self._progress = progress

    def note(self, text: str) -> None:
        """A line above, which stays."""
        self._console.print(f"loadgen: {printable(text)}", markup=False, highlight=False)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["Text"]:
        from rich.text import Text

        from loadgen.cli.live.frame import frame  # with the checks: more than a command needs to start its workers

        # The last column and line stay free: terminals differ in what they do once these are written to.
        size = (options.max_width - 1, max(1, console.height - 1))
        lines = frame(self._settings, self._progress, self._history, *size, ascii_only=options.ascii_only)
        yield from (Text.assemble(*line, no_wrap=True) for line in lines)


@contextlib.contextmanager
def progress_view(settings: RunSettings) -> Iterator[View]:
    """The view that the settings and the terminal ask for; a frame is gone in the end."""
    if settings.quiet:
        yield Silent()
        return
    if settings.disable_tqdm or not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if console.is_dumb_terminal:
        yield Lines()
        return
    screen = Screen(settings, console)
    with Live(screen, console=console, refresh_per_second=REDRAWS_PER_S, transient=True, redirect_stdout=False):
        yield screen
