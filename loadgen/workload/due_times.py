"""DueTimes: when each request of a run is due.

It needs no NumPy, as a measuring process has none.
"""

import hashlib
import math
from array import array
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from loadgen.errors import BadInput, setting
from loadgen.util.clock import NS_PER_S

if TYPE_CHECKING:
    from loadgen.util.arrays import Bools, Int64s

# Instead of a due time: the request follows others of its session; the arrival process decides.
FOLLOWS, DRAWN = -1, -2


class Stripe(NamedTuple):
    """The requests of one of several loops.

    Attributes:
        numbers: Their numbers in the run, ascending.
        due: Their due times, ns from the start, or FOLLOWS.
        all_at_once: Whether all requests of the run, not of this loop alone, are due at the start.
    """

    numbers: Sequence[int]
    due: Sequence[int]
    all_at_once: bool = False

    def beginnings(self) -> "Stripe":
        """Return the requests that have a due time of their own: the first of each session."""
        if FOLLOWS not in self.due:
            return self
        pairs = [
            (number, due)
            for number, due in zip(self.numbers, self.due, strict=True)
            if due != FOLLOWS
        ]
        return Stripe([number for number, _ in pairs], [due for _, due in pairs], self.all_at_once)


class DueTimes(Struct, frozen=True, eq=False, dict=True):
    """The due times of all requests of a run.

    Args:
        due: Nanoseconds from the start, sorted; FOLLOWS for a further request of the session of the
            one before it.
        duration_ns: The window over which they were drawn; 0 if all are due at once.

    Raises:
        BadInput: It has no request.
    """

    due: "array[int]"
    duration_ns: int

    def __post_init__(self) -> None:
        if not self.due:
            problem = f"no request is due within {self.duration_ns / NS_PER_S:g} s"
            raise BadInput(setting.duration, problem, "make it longer, or give a higher rate")

    @property
    def due_ns(self) -> "Int64s":
        """`due` as a NumPy array, int64, shape (count,), read-only."""
        import numpy as np  # never in a measuring process: it takes a tenth of a second, and 20 MB

        due_ns: Int64s = np.frombuffer(memoryview(self.due).toreadonly(), dtype=np.int64)
        return due_ns

    @property
    def begins(self) -> "Bools":
        """Whether each request has a due time of its own, shape (count,): the first of each
        session.
        """
        begins: Bools = self.due_ns != FOLLOWS
        return begins

    @property
    def count(self) -> int:
        """The number of requests."""
        return len(self.due)

    @cached_property
    def sessions(self) -> int:
        """The number of sessions; a single request is a session of its own."""
        return self.count - self.due.count(FOLLOWS)

    @property
    def has_sessions(self) -> bool:
        """Whether any session has several requests."""
        return self.sessions < self.count

    @property
    def rate(self) -> float:
        """The mean rate over the window, requests/s; inf if all are due at once."""
        return self.count / self.duration_ns * NS_PER_S if self.duration_ns else math.inf

    @property
    def session_numbers(self) -> "array[int]":
        """The session number of each request."""
        return array("q", accumulate((due != FOLLOWS for due in self.due[1:]), initial=0))

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of `due` in hex, the same in all shards of one run."""
        return hashlib.sha256(self.due.tobytes()).hexdigest()

    def about(self) -> dict[str, Any]:
        """Return the facts for provenance, as JSON."""
        return {
            "sha256": self.sha256,
            "requests": self.count,
            "sessions": self.sessions,
            "duration_s": self.duration_ns / NS_PER_S,
        }

    def stripe(self, i: int, n: int) -> Stripe:
        """Return every `n`-th session (or single request) starting with number `i`, 0 <= i < n.

        It is empty if there are fewer than `n` sessions.
        """
        if not 0 <= i < n:
            raise ValueError(f"invalid stripe {i} of {n}")
        all_at_once = self.duration_ns == 0
        if not self.has_sessions:
            return Stripe(range(i, self.count, n), self.due[i::n], all_at_once)
        numbers = array(
            "q", (number for number, session in enumerate(self.session_numbers) if session % n == i)
        )
        return Stripe(numbers, array("q", (self.due[number] for number in numbers)), all_at_once)
