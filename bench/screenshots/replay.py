"""Draws the live view from recorded progress, and waits: `python -m bench.screenshots.replay
NAME`.
"""

import sys
import time

from rich.console import Console

from bench.screenshots.cases import progress_of, settings_of
from loadgen.cli.live.view import ScreenView

SHOWN = 0.7  # of the time on the clock


def main(name: str) -> None:
    """Draw the frame at a share of the run."""
    console = Console()
    screen = ScreenView(settings_of(name), console)
    recorded = [progress for progress in progress_of(name) if progress.begun]
    for progress in recorded[: round(SHOWN * len(recorded))]:
        screen.show(progress)
    console.print(screen, end="")
    time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
