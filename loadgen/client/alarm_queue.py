"""AlarmQueue: hands out items when they are due."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

from loadgen.util.clock import AnyAlarm, Clock

T = TypeVar("T")


class AlarmQueue(Generic[T]):
    """Hands out items when they are due, the earliest first.

    Args:
        hand_out: Called with an item and the time at which it was due, ns.
        clock: The clock of the times.
    """

    def __init__(self, hand_out: Callable[[T, int], None], clock: Clock) -> None:
        self._hand_out = hand_out
        self._clock = clock
        self._items: list[tuple[int, int, T]] = []  # a heap: due time, number, item
        self._numbers = count()
        self._alarm: AnyAlarm | None = None

    def add(self, at_ns: int, item: T) -> None:
        """Hand out an item at `at_ns`; call in the loop that sends."""
        heapq.heappush(self._items, (at_ns, next(self._numbers), item))
        if self._alarm is None:
            self._alarm = self._clock.alarm(asyncio.get_running_loop(), self._wake)
        self._alarm.set(self._items[0][0])

    def close(self) -> list[T]:
        """Hand out nothing more; return the items that are left, the earliest first."""
        left = [item for _, _, item in sorted(self._items)]
        self._items.clear()
        if self._alarm is not None:
            self._alarm.close()
            self._alarm = None
        return left

    def _wake(self) -> None:
        while self._items and self._items[0][0] <= self._clock.now_ns():
            at_ns, _, item = heapq.heappop(self._items)
            self._hand_out(item, at_ns)
        if self._items and self._alarm is not None:
            self._alarm.set(self._items[0][0])
