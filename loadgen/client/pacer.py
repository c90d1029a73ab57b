"""Pacer and AlarmQueue: what hands out every request when it is due, never early, and skips
none.
"""

import asyncio
import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import Generic, TypeVar

from loadgen.core.read_loop import NEVER, SendHook
from loadgen.util.clock import KERNEL, AnyAlarm, Clock
from loadgen.workload.due_times import Stripe

T = TypeVar("T")
NO_CHANGE = (NEVER, 0)  # of the cap
TURN_NS = 1_000_000  # after sending for so long in one go, streams get to be read


class Pacer:
    """Hands out the requests of a schedule when they are due, with at most `cap` of them in flight.

    Args:
        start_ns: When the clock of the run starts.
        requests: Numbers and due times of the requests that follow none.
        send: Called as send(index, due_ns, ready_ns) when a request may go; ready - due is its wait
            for a slot.
        hook: Checked at each read of a stream, so that requests are sent on time also in a long
            turn of the loop.
        following: How many more requests become due only once others have ended: `follow()` says
            when, or `cancel_followups()` that they never do.
        cap: Maximum of requests in flight; None for no limit. Call `release()` when one has ended.
        caps: When the cap changes, ns on the clock, and to what; ascending. Where it falls,
            requests in flight end, and none is sent until fewer are left.
        closed_loop: Every request is due when a slot is free for it: a burst under a cap has no
            other due time. Those that follow have one, and go first.
        until_ns: Nothing becomes due from then on.
        clock: The clock of the due times.
    """

    def __init__(
        self,
        start_ns: int,
        requests: Stripe,
        send: Callable[[int, int, int], None],
        hook: SendHook,
        *,
        following: int = 0,
        cap: int | None = None,
        caps: Iterable[tuple[int, int]] = (),
        closed_loop: bool = False,
        until_ns: int | None = None,
        clock: Clock = KERNEL,
    ) -> None:
        self._start_ns = start_ns
        self._index = requests.numbers
        self._due = requests.due
        self._hook = hook
        self._clock = clock
        self._now_ns = clock.now_ns
        self._send = send
        self._closed_loop = closed_loop
        self._until = until_ns
        self.cap = cap  # most requests in flight now; None for no limit
        self._slots = len(self._due) + following if cap is None else cap
        self._caps = iter(caps)
        self._change_ns, self._next_cap = next(self._caps, NO_CHANGE)
        self._next = 0
        self._following = following  # not due yet, whether or not it is known when they are
        self._later: list[tuple[int, int]] = []  # a heap of those of which it is known: due, number
        self._waiting: deque[tuple[int, int]] = deque()  # due, but without a slot
        self._stopped = False
        self.never_due = 0  # requests that `until_ns` cut off
        self.all_sent = asyncio.Event()  # set once nothing more is to be sent
        self._alarm: AnyAlarm | None = None

    @property
    def overdue(self) -> int:
        """How many requests are due and not handed out: without a slot, or late; without late
        further turns.
        """
        late = (
            0
            if self._closed_loop
            else bisect_right(self._due, self._now_ns() - self._start_ns, self._next) - self._next
        )
        return len(self._waiting) + late

    def start(self) -> None:
        """Start; call in the loop that sends."""
        if self._stopped:
            return
        self._alarm = self._clock.alarm(asyncio.get_running_loop(), self._wake)
        self._hook.callback = self._wake
        self._wake()

    def stop(self) -> int:
        """Send nothing more; return how many requests were due or would have been.

        A second stop returns 0.
        """
        self._stopped = True
        left = self._drop_all()
        if self._until is not None:  # how many more would have found a slot in time is unknown
            self.never_due += left
            left = 0
        self._finish()
        return left

    def release(self) -> None:
        """Give the slot of a request that has ended to the next one that is due."""
        self._slots += 1
        if not self._waiting and not (self._closed_loop and self._next < len(self._due)):
            return
        at_ns = self._now_ns()
        if self._is_over(at_ns) or self._slots <= 0:
            return
        if self._waiting:
            due, index = self._waiting.popleft()
        else:
            due = at_ns
            index = self._index[self._next]
            self._next += 1
        self._slots -= 1
        self._send(index, due, at_ns)
        self._finish_if_done()

    def follow(self, index: int, due_ns: int) -> None:
        """Have a follow-up become due at `due_ns`; call it before `release()`, so that it can
        have the slot.
        """
        if not self.all_sent.is_set():
            heapq.heappush(self._later, (due_ns, index))
            if self._later[0][1] == index:  # sooner than the alarm is set for, perhaps even now
                self._wake()

    def cancel_followups(self, count: int) -> None:
        """Cancel this many follow-ups, which will never be due."""
        if not self.all_sent.is_set():
            self._following -= count
            self._finish_if_done()

    def _wake(self) -> None:
        if self._stopped:
            return
        now_ns = self._now_ns
        later = self._later
        turn_ends = now_ns() + TURN_NS
        while True:
            at_ns = now_ns()
            if self._change_ns <= at_ns:
                self._change_cap(at_ns)
            due = NEVER
            follows = False
            if self._next < len(self._due) and (self._slots > 0 or not self._closed_loop):
                due = self._start_ns + self._due[self._next]
            if later and later[0][0] < due:
                due = later[0][0]
                follows = True
            if due > at_ns or at_ns > turn_ends:
                break
            ready = at_ns if self._closed_loop and not follows else due
            if self._slots > 0 and self._is_over(ready):
                return
            if follows:
                index = heapq.heappop(later)[1]
                self._following -= 1
            else:
                index = self._index[self._next]
                self._next += 1
            if self._slots > 0:
                self._slots -= 1
                self._send(index, ready, ready)
            else:
                self._waiting.append((due, index))
        if due > at_ns and self._is_over(at_ns):
            return
        due = min(due, self._change_ns, NEVER if self._until is None else self._until)
        if due != NEVER:
            assert self._alarm is not None
            self._alarm.set(due)  # in the past: at the loop's next turn
        self._hook.due_ns = max(due, now_ns())
        self._finish_if_done()

    def _change_cap(self, at_ns: int) -> None:
        """Take the cap of this time, and send what waits for a slot that it adds."""
        assert self.cap is not None
        before = self.cap
        while self._change_ns <= at_ns:
            self.cap = self._next_cap
            self._change_ns, self._next_cap = next(self._caps, NO_CHANGE)
        self._slots += self.cap - before
        while self._waiting and self._slots > 0 and not self._is_over(at_ns):
            due, index = self._waiting.popleft()
            self._slots -= 1
            self._send(index, due, at_ns)

    def _is_over(self, ready_ns: int) -> bool:
        """Return whether time is up for a request that could be sent at `ready_ns`; then none is
        sent any more.
        """
        if self._until is None or ready_ns < self._until:
            return False
        self.never_due += self._drop_all()
        self._finish()
        return True

    def _drop_all(self) -> int:
        """Drop the requests that have not been handed out, and return how many those are."""
        left = len(self._due) - self._next + len(self._waiting) + self._following
        self._next = len(self._due)
        self._following = 0
        self._waiting.clear()
        self._later.clear()
        return left

    def _finish_if_done(self) -> None:
        if self._next == len(self._due) and not self._waiting and not self._following:
            self._finish()

    def _finish(self) -> None:
        if not self.all_sent.is_set():
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
