"""Logging of the library to stderr, with escaped control characters."""

import logging
import sys

from loadgen.util.terminal_text import printable_lines


class Printable(logging.Formatter):
    """Escapes control characters in a message, which may contain text of a server."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, with control characters escaped."""
        return printable_lines(super().format(record))


class ToStderr(logging.Handler):
    """Writes to the current `sys.stderr`: while a live view is drawn there, lines go above it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:  # noqa: BLE001 - like every handler: logging never ends a program
            self.handleError(record)


def to_stderr(level: str) -> None:
    """Log messages of `level` (such as "warning") and above to stderr."""
    handler = ToStderr()
    handler.setFormatter(Printable("loadgen: %(levelname)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
