"""The pace of a run: requests and tokens per second, recently and since its clock started."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Self

from loadgen.metrics.progress import Progress

RECENT_S = 5.0  # the window of the current pace
START = Progress("running")


@dataclass(frozen=True, slots=True)
class Pace:
    """Rates per second.

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


class History:
    """The progress of one run in its last seconds."""

    def __init__(self) -> None:
        self._recent, self._sending = deque([START]), START

    def add(self, progress: Progress) -> None:
        """Add the latest progress; it is ignored before the clock starts."""
        if not progress.begun:
            return
        self._recent.append(progress)
        while self._recent[1].elapsed_s <= progress.elapsed_s - RECENT_S:
            self._recent.popleft()
        if progress.phase == "running":
            self._sending = progress

    def now(self) -> Pace | None:
        """Return the pace of the last `RECENT_S` seconds, or of the time so far if it is shorter; None at the start."""
        return Pace.between(self._recent[0], self._recent[-1])

    def so_far(self) -> Pace | None:
        """Return the pace since the clock started; rates of due and sent end with the last request to be sent."""
        whole, sending = (Pace.between(START, last) for last in (self._recent[-1], self._sending))
        return whole if whole is None or sending is None else replace(whole, due=sending.due, sent=sending.sent)
