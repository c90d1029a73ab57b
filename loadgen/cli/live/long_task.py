"""Gauge: how far something long is, on stderr; nothing is said of what takes less than a second."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from loadgen.cli.live.cadence import LINE_EVERY_S, REDRAWS_PER_S, Cadence, rest_s
from loadgen.util.number_format import clock_time
from loadgen.util.terminal_text import printable

PATIENCE_S = 1.0
ERASED = "\r\x1b[K"


class Gauge:
    """A line that is drawn again and again on a terminal, and now and then a new one elsewhere.

    Args:
        text: What to say, of how much is done and of the seconds that it took.
        quiet: Say nothing.
        stream: Where to.
        clock: Seconds.
    """

    def __init__(
        self,
        text: Callable[[int, float], str],
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._text, self._quiet, self._clock = text, quiet, clock
        self._stream = stream or sys.stderr
        self._on_terminal = self._stream.isatty()
        self._began_s = clock()
        every_s = 1 / REDRAWS_PER_S if self._on_terminal else LINE_EVERY_S
        self._cadence = Cadence(every_s, PATIENCE_S, clock)
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._drawn and self._on_terminal:
            self._say(ERASED)

    def __call__(self, done: int) -> None:
        """So much is done."""
        if self._quiet or not self._cadence.due():
            return
        self._drawn = True
        line = printable(self._text(done, self._clock() - self._began_s))
        self._say(f"{ERASED}{line}" if self._on_terminal else f"loadgen: {line}\n")

    def _say(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def preparing(done: int, total: int, elapsed_s: float) -> str:
    """How far the prompts are; `total` is 0 where it is not known."""
    of_all = f" of {total}" if total else ""
    return f"preparing prompts: {done}{of_all}{left(done, total, elapsed_s)}"


def left(done: int, total: int, elapsed_s: float) -> str:
    """How long the rest takes at the pace so far: "0:42 left", or nothing where there is no pace or no rest."""
    seconds = rest_s(done, total, elapsed_s)
    return "" if seconds is None else f", {clock_time(seconds)} left"
