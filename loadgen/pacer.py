"""Pacer: sends every request when it is due; never early, never skipped."""

import asyncio
from collections import deque
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from loadgen.clock import KERNEL, AnyAlarm, Clock
from loadgen.wire import NEVER, Bell

TURN_NS = 1_000_000  # after sending for so long in one go, streams get to be read


class Pacer:
    """Walks a schedule and hands out requests, with at most `cap` of them in flight.

    Args:
        due_ns: Absolute ns on the clock, sorted; one per request.
        index: The number of each of those requests within the whole run.
        send: Called as send(index, due_ns, ready_ns) when a request may go; ready - due is its wait for a slot.
        bell: Rung by streams as they are read, so that a long turn of the loop holds nobody up.
        cap: Most requests in flight; None for no limit. Tell `release()` when one has ended.
        closed_loop: Every request is due when a slot is free for it: a burst under a cap has no other due time.
        until_ns: Nothing becomes due from then on.
        clock: By which requests are due.
    """

    def __init__(
        self,
        due_ns: npt.NDArray[np.int64],
        index: npt.NDArray[np.int64],
        send: Callable[[int, int, int], None],
        bell: Bell,
        *,
        cap: int | None = None,
        closed_loop: bool = False,
        until_ns: int | None = None,
        clock: Clock = KERNEL,
    ) -> None:
        # memoryviews give plain ints, several times faster than numpy scalars
        self._due, self._index = due_ns.data, index.data
        self._bell, self._clock, self._now_ns = bell, clock, clock.now_ns
        self._send, self._closed_loop, self._until = send, closed_loop, until_ns
        self._slots = len(due_ns) if cap is None else cap
        self._next = 0
        self._waiting: deque[int] = deque()  # due, but without a slot
        self._stopped = False
        self.never_due = 0  # requests that `until_ns` cut off
        self.all_sent = asyncio.Event()
        self._alarm: AnyAlarm | None = None

    def start(self) -> None:
        """Begin; call in the loop that sends."""
        if self._stopped:
            return
        self._alarm = self._clock.alarm(asyncio.get_running_loop(), self._wake)
        self._bell.ring = self._wake
        self._wake()

    def stop(self) -> int:
        """Send nothing more; returns how many requests were due or would have been. A second stop finds none."""
        self._stopped = True
        left = len(self._due) - self._next + len(self._waiting)
        self._next = len(self._due)
        self._waiting.clear()
        if self._until is not None:  # how many more would have found a slot in time, nobody knows
            self.never_due += left
            left = 0
        self._finish()
        return left

    def release(self) -> None:
        """A request has ended: its slot goes to the next one that is due."""
        self._slots += 1
        if self._waiting and not self._stopped:
            position = self._waiting.popleft()
            self._hand_out(position, self._now_ns())
            self._finish_if_done()

    def _wake(self) -> None:
        if self._stopped:
            return
        now_ns = self._now_ns
        turn_ends = now_ns() + TURN_NS
        while self._next < len(self._due):
            at_ns = now_ns()
            due = self._due[self._next]
            if due > at_ns or at_ns > turn_ends:
                self._wake_at(due)
                return
            position = self._next
            self._next += 1
            if self._slots > 0:
                self._hand_out(position, at_ns if self._closed_loop else due)
            else:
                self._waiting.append(position)
        self._finish_if_done()

    def _wake_at(self, due_ns: int) -> None:
        assert self._alarm is not None
        self._alarm.set(due_ns)  # in the past: at the loop's next turn
        self._bell.at_ns = max(due_ns, self._now_ns())

    def _hand_out(self, position: int, ready_ns: int) -> None:
        if self._until is not None and ready_ns >= self._until:
            self.never_due = 1 + len(self._waiting) + len(self._due) - self._next
            self._waiting.clear()
            self._next = len(self._due)
            return
        self._slots -= 1
        due = ready_ns if self._closed_loop else self._due[position]
        self._send(self._index[position], due, max(ready_ns, due))

    def _finish_if_done(self) -> None:
        if self._next == len(self._due) and not self._waiting:
            self._finish()

    def _finish(self) -> None:
        if not self.all_sent.is_set():
            if self._alarm is not None:
                self._alarm.close()
            self._bell.at_ns = NEVER
            self.all_sent.set()
