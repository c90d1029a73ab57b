"""Cadence: how often something that goes on is told of, and how long the rest of it takes."""

import time
from collections.abc import Callable

REDRAWS_PER_S = 4  # on a terminal
LINE_EVERY_S = 2.0  # elsewhere


class Cadence:
    """Tells when to tell again.

    Args:
        every_s: Seconds from one telling to the next.
        patience_s: Seconds before the first.
        clock: Seconds.
    """

    def __init__(self, every_s: float, patience_s: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = every_s, clock
        self._next_s = clock() + patience_s

    def due(self, *, begins: bool = False) -> bool:
        """Whether the last telling is old, or something begins; it counts as told then."""
        now_s = self._clock()
        if not begins and now_s < self._next_s:
            return False
        self._next_s = now_s + self._every_s
        return True


def rest_s(done: int, total: int, elapsed_s: float) -> float | None:
    """How long the rest takes at the pace so far; None where there is no pace, or no rest."""
    return elapsed_s * (total - done) / done if 0 < done < total and elapsed_s > 0 else None
