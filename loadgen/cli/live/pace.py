"""Pace: requests and tokens per second between two moments of a run."""

from dataclasses import dataclass
from typing import Self

from loadgen.metrics.progress import Progress


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
