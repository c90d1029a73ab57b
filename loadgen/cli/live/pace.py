"""Pace: how much of a run goes by in a second, of late and since its clock started."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Self

from loadgen.metrics.progress import Progress

NOW_S = 5.0  # over which what goes by now is counted
BEGINNING = Progress("running")


@dataclass(frozen=True, slots=True)
class Pace:
    """What goes by in a second.

    Attributes:
        due, sent, ended: Requests.
        tokens: Output tokens as they come, those of requests that are in flight or failed too.
    """

    due: float
    sent: float
    ended: float
    tokens: float

    @classmethod
    def between(cls, before: Progress, after: Progress) -> Self | None:
        """Between two looks at a run; None where no time went by."""
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
    """What was known of one run in its last seconds."""

    def __init__(self) -> None:
        self._late, self._sending = deque([BEGINNING]), BEGINNING

    def add(self, progress: Progress) -> None:
        """Take what is known now; before the clock starts there is no pace."""
        if not progress.begun:
            return
        self._late.append(progress)
        while self._late[1].elapsed_s <= progress.elapsed_s - NOW_S:
            self._late.popleft()
        if progress.phase == "running":
            self._sending = progress

    def now(self) -> Pace | None:
        """In the last `NOW_S` seconds, or all there are; None before there is any."""
        return Pace.between(self._late[0], self._late[-1])

    def so_far(self) -> Pace | None:
        """Since the clock started; of due and sent, as long as there was something to send."""
        whole, sending = (Pace.between(BEGINNING, last) for last in (self._late[-1], self._sending))
        return whole if whole is None or sending is None else replace(whole, due=sending.due, sent=sending.sent)
