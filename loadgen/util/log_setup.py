"""Logging of the library to stderr, with escaped control characters."""

import logging
import sys

from loadgen.util.terminal_text import printable_lines


class ToStderr(logging.Handler):
    """Writes to the current `sys.stderr`, with control characters escaped: a message may contain text of a server."""

    # While a live view is drawn there, lines go above it.

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            print(printable_lines(self.format(record)), file=sys.stderr, flush=True)
        except Exception:  # noqa: BLE001 - like every handler: logging never ends a program
            self.handleError(record)


def to_stderr(level: str) -> None:
    """Log messages of `level` (such as "warning") and above to stderr."""
    logging.basicConfig(level=level.upper(), format="loadgen: %(levelname)s: %(message)s", handlers=[ToStderr()])
