"""Progress: a line every few seconds, for logs; of a run as `live` shows it, only the notes are of here."""

import sys
import time
from collections.abc import Callable
from typing import Protocol

from loadgen.cli.live.cadence import LINE_EVERY_S, Cadence
from loadgen.cli.live.long_task import preparing
from loadgen.cli.live.pace import History, Pace
from loadgen.metrics.progress import DONE, Progress
from loadgen.util.terminal_text import printable


class View(Protocol):
    """Something that shows how far a run is."""

    measuring: bool

    def show(self, progress: Progress) -> None:
        """Show it."""

    def note(self, text: str) -> None:
        """Say something once."""


class Silent:
    """Shows nothing but notes."""

    measuring = False

    def show(self, progress: Progress) -> None:
        """Only remember whether the measurement is under way."""
        self.measuring = progress.measuring

    def note(self, text: str) -> None:
        """A line on stderr."""
        print(f"loadgen: {printable(text)}", file=sys.stderr, flush=True)


class Lines(Silent):
    """A line now and then, for logs.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._cadence, self._phase = Cadence(LINE_EVERY_S, clock=clock), ""
        self._history = History()

    def show(self, progress: Progress) -> None:
        """A line if the phase is new or the last one is old."""
        super().show(progress)
        self._history.add(progress)
        begins, self._phase = progress.phase != self._phase, progress.phase
        if self._cadence.due(begins=begins):
            self.note(describe(progress, None if progress.phase == DONE else self._history.now()))


def describe(progress: Progress, now: Pace | None = None) -> str:
    """One line: what is being done and how far it is.

    Args:
        progress: What is known of it.
        now: What goes by in a second, where that is to be said too.
    """
    if progress.phase == "preparing":
        return preparing(progress.ended, progress.scheduled, progress.elapsed_s)
    if progress.phase == "starting":
        usual = "" if progress.usual_s is None else f" (usually {progress.usual_s:.0f} s)"
        return f"starting the engine {progress.elapsed_s:.0f} s{usual}: {progress.note or 'nothing said yet'}"
    if progress.phase == "waiting":
        return f"waiting for the server {progress.elapsed_s:.0f} s: {progress.note}"
    if not progress.elapsed_s:
        return progress.phase
    of_all = f" of {progress.scheduled}" if progress.scheduled else ""
    line = (
        f"{progress.phase} {progress.elapsed_s:.0f} s: {progress.ended}{of_all} ended, "
        f"{progress.in_flight} in flight, {progress.not_ok} not ok, {progress.output_tokens} tokens"
    )
    if progress.cancelled:
        line += f", {progress.cancelled} cancelled"
    if progress.silent:
        line += f", {len(progress.silent)} silent: {silence(progress)}"
    if now is not None:
        line += f"; now {now.sent:.1f} requests/s, {now.tokens:.0f} tokens/s"
        line += f", TTFT p99 so far {ttft:.1f} ms" if (ttft := progress.ttft.p99_ms) is not None else ""
    return line


def silence(progress: Progress) -> str:
    """Of the streams in which no token comes, the one in which the last came first: which, and since when."""
    index, since_s = min(progress.silent.items(), key=lambda one: one[1])
    return f"request {index}, no token since {since_s:.0f} s"
