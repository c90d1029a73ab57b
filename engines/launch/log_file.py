"""Log files: reading an engine's log, which may be long and may still grow."""

import os
from dataclasses import dataclass
from pathlib import Path

TAIL_BYTES = 64 << 10
MAX_LINE_CHARS = 1000  # a progress bar, or output that is not text, may be one endless line
READ_BYTES = 8 << 20  # read from the beginning and from the end, to find the cause of a crash


@dataclass(frozen=True, slots=True)
class LogFile:
    """The log file of one engine.

    Attributes:
        path: The file. If the supervisor has truncated it, its beginning is in a file with `.first` added to the name.
    """

    path: Path

    def last_line(self) -> str:
        """Return the last line that is not blank; empty if there is none yet."""
        lines = self.tail(1)
        return lines[0] if lines else ""

    def tail(self, count: int) -> list[str]:
        """Return at most the last `count` lines that are not blank, each cut to 1,000 characters."""
        return [line[:MAX_LINE_CHARS] for line in self._end(TAIL_BYTES).splitlines() if line.strip()][-count:]

    def text(self) -> str:
        """Return the log; of a long one the beginning and the end."""
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
