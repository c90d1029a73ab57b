"""Logs: what the library has to say, on stderr, a safe line each."""

import logging
import sys

from loadgen.terminal import printable_lines


class Printable(logging.Formatter):
    """Shows what others may have put into a message, and never obeys it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return printable_lines(super().format(record))


def to_stderr(level: str) -> None:
    """Log from `level` (a name as `warning`) upwards."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Printable("loadgen: %(levelname)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
