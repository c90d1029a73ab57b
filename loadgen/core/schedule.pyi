"""Schedule: which request may be sent at a time, by due times, slots and follow-ups."""

from collections.abc import Iterable, Sequence
from typing import final

@final
class Schedule:
    """The requests that have not been handed out; schedule.pyx says more."""

    index: int
    due_ns: int
    ready_ns: int
    next_ns: int
    cap: int | None
    cut_off: int
    is_done: bool
    def __init__(
        self,
        start_ns: int,
        numbers: Sequence[int],
        due: Sequence[int],
        *,
        following: int = 0,
        cap: int | None = None,
        caps: Iterable[tuple[int, int]] = (),
        closed_loop: bool = False,
        until_ns: int | None = None,
    ) -> None: ...
    def overdue(self, at_ns: int) -> int: ...
    def step(self, at_ns: int) -> bool: ...
    def release(self) -> bool: ...
    def follow(self, index: int, due_ns: int) -> bool: ...
    def cancel(self, count: int) -> None: ...
    def stop(self) -> int: ...
