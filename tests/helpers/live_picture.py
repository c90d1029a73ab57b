"""Makes docs/pictures/live.svg, a frame of the live view as tmux has it: `python -m tests.helpers.live_picture`."""

import io
import re
import shlex
import subprocess
import sys
import time

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from tests.helpers.command_line import LOADGEN, TOKENIZER, served
from tests.helpers.source import ROOT

PICTURE = ROOT / "docs" / "pictures" / "live.svg"
COLUMNS, ROWS = 80, 20
SHOWN = "run --rate 60 --num-prompts 3000 --timeout 3.3"
SERVER = ["--step-base-ms", "18"]
WANTED = "0:20 "
SOCKET = ["tmux", "-L", "loadgen-picture"]


def frame(url: str) -> str:
    """What is to be seen of a run, with the escapes of its colours, once it has gone on for a while."""
    flags = ["--base-url", url, "--tokenizer", TOKENIZER, "--random-input-len", "256", "--random-output-len", "128"]
    command = shlex.join([*LOADGEN, *shlex.split(SHOWN), *flags, "--random-range-ratio", "0.5"])
    subprocess.run([*SOCKET, "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), command], check=True)
    try:
        for _ in range(600):
            seen = subprocess.run(
                [*SOCKET, "capture-pane", "-p", "-e"], capture_output=True, text=True, check=True
            ).stdout
            if WANTED in seen:
                return seen.rstrip("\n")
            time.sleep(0.1)
    finally:
        subprocess.run([*SOCKET, "kill-server"], check=False)
    raise RuntimeError(f"it never showed {WANTED!r}:\n{seen}")


def main() -> None:
    """Write the picture."""
    with served(*SERVER) as (url, _):
        seen = frame(url)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(seen))
    # Nothing is loaded from elsewhere: whoever looks at it has a font of their own.
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(console.export_svg(title="loadgen run", code_format=form, unique_id="live"))
    print(f"{PICTURE}:\n{seen}", file=sys.stderr)


if __name__ == "__main__":
    main()
