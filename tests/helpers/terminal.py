"""A terminal for the commands that tests start: what they draw on it, and what of that is to be
seen.
"""

import contextlib
import fcntl
import os
import re
import struct
import subprocess
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path

from tests.helpers.command_line import LOADGEN, environment

_TOKEN = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|([^\x1b])")


class Screen:
    """What is to be seen of all that was written: text, line ends, and the few escapes by which
    rich draws in place.
    """

    def __init__(self) -> None:
        self._lines, self._row, self._column = [""], 0, 0

    def feed(self, text: str) -> None:
        """Write this.

        Raises:
            ValueError: An escape that is not known.
        """
        for parameters, command, plain in _TOKEN.findall(text):
            match command:
                case "A":
                    self._row = max(0, self._row - int(parameters or 1))
                case "K":
                    self._lines[self._row] = ""
                case "m" | "h" | "l":  # colours; the cursor is shown or hidden
                    pass
                case "":
                    self._put(plain)
                case _:
                    raise ValueError(f"ESC [ {parameters} {command}")

    def _put(self, plain: str) -> None:
        if plain == "\r":
            self._column = 0
        elif plain == "\n":
            self._row += 1
            if self._row == len(self._lines):
                self._lines.append("")
        else:
            line = self._lines[self._row].ljust(self._column)
            self._lines[self._row] = line[: self._column] + plain + line[self._column + 1 :]
            self._column += 1

    @property
    def text(self) -> str:
        """All lines, without the blanks at their ends and the empty ones below."""
        return "\n".join(line.rstrip() for line in self._lines).rstrip("\n")


class OnTerminal:
    """`loadgen ARGUMENTS` with stderr on a terminal of this size, and stdout in a file, while the
    context lasts.

    Attributes:
        process: Of the command.
        drawn: All that it has written to the terminal so far.
        screen: What is to be seen of that.
    """

    def __init__(
        self,
        *arguments: str,
        columns: int = 80,
        rows: int = 24,
        cwd: Path | None = None,
        **variables: str,
    ) -> None:
        # A pipe that is read later would be full some time.
        self._out = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in the end
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        sized = {
            name: value
            for name, value in environment().items()
            if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        self.process = subprocess.Popen(
            [*LOADGEN, *arguments],
            cwd=cwd,
            env=sized | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | variables,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=theirs,
            text=True,
        )
        os.close(theirs)
        self.drawn, self.screen, self._left = "", Screen(), b""

    def see(self, wanted: str) -> str:
        """Look at the terminal until this, a regular expression, is to be seen on it; returns
        all that is then.
        """
        while not re.search(wanted, self.screen.text):
            assert self._look(), f"it ended without showing {wanted!r}:\n{self.drawn}"
        return self.screen.text

    def end(self) -> tuple[int, str]:
        """Wait for its end; returns its exit code, and what it has written to stdout."""
        while self._look():
            pass
        code = self.process.wait()
        self._out.seek(0)
        return code, self._out.read()

    def _look(self) -> bool:
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # nobody has it open any more
            return False
        # No escape or character is cut.
        *whole, self._left = re.split(rb"(?<=[\n\r A-Za-z])", self._left + data)
        text = b"".join(whole).decode()
        self.drawn += text
        self.screen.feed(text)
        return True

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        self._out.close()
        os.close(self._ours)


@contextlib.contextmanager
def on_terminal(
    *arguments: str, columns: int = 80, rows: int = 24, cwd: Path | None = None, **variables: str
) -> Iterator[OnTerminal]:
    """See `OnTerminal`."""
    made = OnTerminal(*arguments, columns=columns, rows=rows, cwd=cwd, **variables)
    try:
        yield made
    finally:
        made.close()
