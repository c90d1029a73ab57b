"""Logs: what an engine has written, read from files that may be long and may still grow."""

import os
from dataclasses import dataclass
from pathlib import Path

END_BYTES = 64 << 10
MOST_SHOWN = 1000  # characters of a line: a progress bar, or one that is not text, may be one line for ever
READ_BYTES = 8 << 20  # of the beginning and of the end of what is looked at for a cause


@dataclass(frozen=True, slots=True)
class Log:
    """The output of one engine.

    Attributes:
        path: Its file. Once that was cut, its beginning stands beside it, under the same name with `.first` added.
    """

    path: Path

    def last_line(self) -> str:
        """The last line that says something; empty if there is none yet."""
        lines = self.tail(1)
        return lines[0] if lines else ""

    def tail(self, count: int) -> list[str]:
        """The last lines that say something, `count` at most; of a long one its beginning."""
        return [line[:MOST_SHOWN] for line in self._end(END_BYTES).splitlines() if line.strip()][-count:]

    def text(self) -> str:
        """Its beginning and its end, where the whole is too long."""
        first = self.path.with_name(f"{self.path.name}.first")
        try:
            beginning = first.read_bytes() if first.exists() else b""
            if not beginning and self.path.stat().st_size > READ_BYTES:
                with open(self.path, "rb") as file:
                    beginning = file.read(READ_BYTES)
        except OSError:
            beginning = b""
        return beginning.decode(errors="replace") + self._end(READ_BYTES)

    def _end(self, most: int) -> str:
        try:
            with open(self.path, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - most))
                return file.read(most).decode(errors="replace")
        except OSError:
            return ""
