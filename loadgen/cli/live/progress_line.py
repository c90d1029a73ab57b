"""Progress of a long task on stderr: one redrawn line on a terminal, a line now and then
elsewhere.
"""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from msgspec import Struct

from loadgen.metrics.failures import lost_text
from loadgen.metrics.progress import Progress
from loadgen.util.number_format import clock_time
from loadgen.util.terminal_text import printable

REDRAWS_PER_S = 4  # on a terminal
LINE_EVERY_S = 2.0  # elsewhere
OVERLOADED = "OVERLOADED: requests pile up"
FIRST_AFTER_S = 1.0  # nothing is shown of a task that takes less
ERASE = "\r\x1b[K"


class Cadence:
    """Decides when the next update is due.

    Args:
        every_s: Seconds between updates.
        first_after_s: Seconds before the first one.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        every_s: float,
        first_after_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every_s, self._clock = every_s, clock
        self._next_s = clock() + first_after_s

    def due(self, *, begins: bool = False) -> bool:
        """Whether an update is due now; if so, the next one is due `every_s` later.

        Args:
            begins: A new phase begins, so that an update is due in any case.
        """
        now_s = self._clock()
        if not begins and now_s < self._next_s:
            return False
        self._next_s = now_s + self._every_s
        return True


class ProgressLine:
    """Shows how far a task is: redraws one line on a terminal, and prints a new line every two
    seconds elsewhere.

    Args:
        text: Makes the line from the count of what is done and the seconds since the start.
        quiet: Show nothing.
        stream: The output, stderr by default.
        clock: Returns the time in seconds.
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
        self._start_s = clock()
        every_s = 1 / REDRAWS_PER_S if self._on_terminal else LINE_EVERY_S
        self._cadence = Cadence(every_s, FIRST_AFTER_S, clock)
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if self._drawn and self._on_terminal:
            self._write(ERASE)

    def __call__(self, done: int) -> None:
        """Show the count of what is done, if an update is due."""
        if self._quiet or not self._cadence.due():
            return
        self._drawn = True
        line = printable(self._text(done, self._clock() - self._start_s))
        self._write(f"{ERASE}{line}" if self._on_terminal else f"loadgen: {line}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Pace(Struct, frozen=True):
    """Requests and tokens per second between two moments of a run.

    Attributes:
        due: Requests that became due.
        sent: Requests that were sent.
        ended: Requests that ended.
        tokens: Output tokens as they arrive, also of requests in flight and of failed ones.
    """

    due: float
    sent: float
    ended: float
    tokens: float

    @classmethod
    def between(cls, before: Progress, after: Progress) -> Self | None:
        """Return the pace between two moments of a run; None if no time lies between them."""
        seconds = after.elapsed_s - before.elapsed_s
        if seconds <= 0:
            return None
        tokens = (after.streamed_tokens - before.streamed_tokens) * after.tokens_per_counted
        return cls(
            (after.due - before.due) / seconds,
            (after.sent - before.sent) / seconds,
            (after.ended - before.ended) / seconds,
            tokens / seconds,
        )


def describe(progress: Progress, pace: Pace | None = None) -> str:
    """Describe the progress in one line.

    Args:
        progress: The progress of the run.
        pace: The current rates, which are added if given.
    """
    if progress.phase == "preparing":
        return preparing_text(progress.ended, progress.scheduled, progress.elapsed_s)
    if progress.phase == "starting":
        usual = "" if progress.usual_s is None else f" (usually {progress.usual_s:.0f} s)"
        return (
            f"starting the engine {progress.elapsed_s:.0f} s{usual}: "
            f"{progress.note or 'no output yet'}"
        )
    if progress.phase == "waiting":
        return f"waiting for the server {progress.elapsed_s:.0f} s: {progress.note}"
    if progress.phase == "busy":
        return f"waiting for a quiet machine {progress.elapsed_s:.0f} s: {progress.note}"
    if not progress.elapsed_s:
        return progress.phase
    of_all = f" of {progress.scheduled}" if progress.scheduled else ""
    line = (
        f"{progress.phase} {progress.elapsed_s:.0f} s: {progress.ok}{of_all} answered, "
        f"{progress.in_flight} in flight, {progress.failed} failed"
    )
    if progress.streams:
        line += f", {progress.output_tokens} tokens"
    if lost := lost_text(progress.cut_off, progress.never_sent):
        line += f", {lost}"
    if progress.silent:
        line += f", {len(progress.silent)} silent: {longest_silence(progress)}"
    if pace is not None:
        line += f"; now {pace.sent:.1f} req/s"
        line += f", {pace.tokens:.0f} tokens/s" if progress.streams else ""
        line += (
            f", TTFT p99 so far {ttft:.1f} ms" if (ttft := progress.ttft.p99_ms) is not None else ""
        )
    return line


def longest_silence(progress: Progress) -> str:
    """Name the stream that has been silent longest, and the time of its last token."""
    index, last_s = min(progress.silent.items(), key=lambda silence: silence[1])
    return f"request {index}, last token at {last_s:.0f} s"


def preparing_text(done: int, total: int, elapsed_s: float) -> str:
    """Describe how many prompts are prepared.

    Args:
        done: Prompts that are ready.
        total: Prompts of the run; 0 if it is not known.
        elapsed_s: Seconds since the start.
    """
    of_all = f" of {total}" if total else ""
    return f"preparing prompts: {done}{of_all}{time_left(done, total, elapsed_s)}"


def time_left(done: int, total: int, elapsed_s: float) -> str:
    """Describe the time left as ", 0:42 left"; empty if it is not known, or nothing is left."""
    seconds = left_s(done, total, elapsed_s)
    return "" if seconds is None else f", {clock_time(seconds)} left"


def left_s(done: int, total: int, elapsed_s: float) -> float | None:
    """Return the seconds left at the pace so far; None if there is no pace yet, or nothing is
    left.
    """
    return elapsed_s * (total - done) / done if 0 < done < total and elapsed_s > 0 else None
