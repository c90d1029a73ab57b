"""Logs: what the library has to say, on stderr, a safe line each."""

import logging
import sys

from loadgen.util.terminal_text import printable_lines


class Printable(logging.Formatter):
    """Shows what others may have put into a message, and never obeys it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return printable_lines(super().format(record))


class ToStderr(logging.Handler):
    """Writes to what is stderr at the moment: while a live view is drawn there, lines go above it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:  # noqa: BLE001 - as every handler: a log ends nothing
            self.handleError(record)


def to_stderr(level: str) -> None:
    """Log from `level` (a name as `warning`) upwards."""
    handler = ToStderr()
    handler.setFormatter(Printable("loadgen: %(levelname)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
