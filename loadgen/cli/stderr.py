"""Stderr: lines about what a command does, and whether a screen can be drawn there."""

import sys
from typing import TYPE_CHECKING

from loadgen.util.terminal_text import printable

if TYPE_CHECKING:
    from rich.console import Console


def say(text: str) -> None:
    """Print a line; what a terminal may interpret is escaped."""
    print(f"loadgen: {printable(text)}", file=sys.stderr, flush=True)


def screen() -> "Console | None":
    """Return a console of rich if stderr is a terminal on which lines can be redrawn, else None."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console

    console = Console(stderr=True)
    return None if console.is_dumb_terminal else console
