"""Pacer, which hands out every request when it is due, never early; and AlarmQueue, which does so
with other items.
"""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

from loadgen.core.read_loop import NEVER, SendHook
from loadgen.core.schedule import Schedule
from loadgen.util.clock import KERNEL, AnyAlarm, Clock

T = TypeVar("T")
TURN_NS = 1_000_000  # after sending for so long in one go, streams get to be read


class Pacer:
    """Hands out the requests of a schedule when they are due.

    Args:
        schedule: The requests.
        send: Called as send(index, due_ns, ready_ns) when a request may go; ready - due is its wait
            for a slot.
        hook: Checked at each read of a stream, so that requests are sent on time also in a long
            turn of the loop.
        clock: The clock of the due times.

    Attributes:
        schedule: The same.
        all_sent: Set once nothing more is to be sent.
    """

    def __init__(
        self,
        schedule: Schedule,
        send: Callable[[int, int, int], None],
        hook: SendHook,
        clock: Clock = KERNEL,
    ) -> None:
        self.schedule = schedule
        self.all_sent = asyncio.Event()
        self._send = send
        self._hook = hook
        self._clock = clock
        self._now_ns = clock.now_ns
        self._is_stopped = False
        self._alarm: AnyAlarm | None = None

    @property
    def overdue(self) -> int:
        """As `Schedule.overdue`, now."""
        return self.schedule.overdue(self._now_ns())

    def start(self) -> None:
        """Start; call in the loop that sends."""
        if self._is_stopped:
            return
        self._alarm = self._clock.alarm(asyncio.get_running_loop(), self._wake)
        self._hook.callback = self._wake
        self._wake()

    def stop(self) -> int:
        """Send nothing more; return how many requests were due or would have been.

        A second stop returns 0.
        """
        self._is_stopped = True
        left = self.schedule.stop()
        self._finish_if_done()
        return left

    def release(self) -> None:
        """Give the slot of a request that has ended to the next one that is due."""
        schedule = self.schedule
        if schedule.release():
            if schedule.step(self._now_ns()):
                self._send(schedule.index, schedule.due_ns, schedule.ready_ns)
            self._finish_if_done()

    def follow(self, index: int, due_ns: int) -> None:
        """Have a follow-up become due at `due_ns`; call it before `release()`, so that it can
        have the slot.
        """
        if not self.all_sent.is_set() and self.schedule.follow(index, due_ns):
            self._wake()  # it is sooner than the alarm is set for, perhaps even now

    def cancel_followups(self, count: int) -> None:
        """Cancel this many follow-ups, which will never be due."""
        if not self.all_sent.is_set():
            self.schedule.cancel(count)
            self._finish_if_done()

    def _wake(self) -> None:
        if self._is_stopped:
            return
        schedule = self.schedule
        at_ns = self._now_ns()
        turn_ends_ns = at_ns + TURN_NS
        while at_ns <= turn_ends_ns and schedule.step(at_ns):
            self._send(schedule.index, schedule.due_ns, schedule.ready_ns)
            at_ns = self._now_ns()
        if schedule.is_done:
            self._finish_if_done()
            return
        is_cut_off = at_ns > turn_ends_ns
        next_ns = at_ns if is_cut_off else schedule.next_ns
        if next_ns != NEVER:
            assert self._alarm is not None
            self._alarm.set(next_ns)  # in the past: at the loop's next turn
        # Reading gets as long as sending has had.
        self._hook.due_ns = at_ns + TURN_NS if is_cut_off else max(next_ns, at_ns)

    def _finish_if_done(self) -> None:
        if self.schedule.is_done and not self.all_sent.is_set():
            if self._alarm is not None:
                self._alarm.close()
            self._hook.due_ns = NEVER
            self.all_sent.set()


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
