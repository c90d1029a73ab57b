"""Pictures of what a command shows in a terminal of a given size."""

import io
import re
import shlex
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

SETTLED = 5  # how often the same screen has to be seen
PATIENCE_S = 60.0


def capture(command: Sequence[str], columns: int, rows: int, folder: Path) -> str:
    """Return the screen of tmux, with the escapes of its colours, once a command has drawn all.

    Args:
        command: The command; what it prints stays to be seen after its end.
        columns: The width of the terminal.
        rows: The height of the terminal.
        folder: Where the command runs.
    """
    # A server of its own, which may end when it likes.
    tmux = ["tmux", "-L", f"loadgen-screenshots-{uuid.uuid4()}"]
    shown = f"clear; {shlex.join(command)}; sleep 600"
    size = ["-x", str(columns), "-y", str(rows)]
    subprocess.run([*tmux, "new-session", "-d", *size, "-c", str(folder), shown], check=True)
    try:
        seen, times, deadline = "", 0, time.monotonic() + PATIENCE_S
        while times < SETTLED and time.monotonic() < deadline:
            time.sleep(0.3)
            now = subprocess.run(
                [*tmux, "capture-pane", "-p", "-e"], capture_output=True, text=True, check=True
            ).stdout
            times = times + 1 if now == seen and now.strip() else 0
            seen = now
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    return seen.rstrip("\n")


def svg(seen: str, columns: int, title: str) -> str:
    """Draw a screen; nothing is loaded from elsewhere: whoever looks at it has a font of their
    own.
    """
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(seen), soft_wrap=True)
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title=title, code_format=form, unique_id="screen")
