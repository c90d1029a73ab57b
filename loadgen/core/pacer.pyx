# cython: language_level=3
"""Pacer: hands out every request of a schedule when it is due, never early."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.c.kernel cimport NEVER, now_ns
from loadgen.core.read_loop cimport SendHook
from loadgen.core.schedule cimport Schedule
from loadgen.util.method cimport call_with, method_of
from loadgen.util.timerfd cimport set_alarm

import asyncio

from loadgen.util.clock import KERNEL

cpdef enum:
    TURN_NS = 1000000  # after sending for so long in one go, streams get to be read


@cython.final
cdef class Pacer:
    """Hands out the requests of a schedule when they are due.

    Args:
        schedule: The requests.
        send: Called with the schedule when the request that it has handed out may go; ready_ns -
            due_ns is its wait for a slot.
        hook: Checked at each read of a stream, so that requests are sent on time also in a long
            turn of the loop; told of an exception of ours in a wake-up, which may come from a read
            that has nothing to do with it.
        clock: The clock of the due times.

    Attributes:
        schedule: The same.
        all_sent: Set once nothing more is to be sent.
    """

    def __init__(self, Schedule schedule not None, send, SendHook hook not None, clock=KERNEL):
        self.schedule, self._send, self._hook = schedule, send, hook
        self._clock, self._now_ns = clock, clock.now_ns
        self._reads_kernel = clock.now_ns is KERNEL.now_ns
        self.all_sent = asyncio.Event()

    @property
    def overdue(self):
        """As `Schedule.overdue`, now."""
        return self.schedule.overdue(self._now())

    def start(self):
        """Start; call in the loop that sends."""
        if self._is_stopped:
            return
        wake = method_of(self, wake_pacer)
        self._alarm = self._clock.alarm(asyncio.get_running_loop(), wake)
        self._hook.callback = wake
        self._wake()

    def stop(self):
        """Send nothing more; return how many requests were due or would have been.

        A second stop returns 0.
        """
        self._is_stopped = True
        left = self.schedule.stop()
        self._finish_if_done()
        return left

    cpdef int release(self) except -1:
        """Give the slot of a request that has ended to the next one that is due."""
        cdef Schedule schedule = self.schedule
        if schedule.release():
            if schedule.step(self._now()):
                call_with(self._send, schedule)
            self._finish_if_done()
        return 0

    def follow(self, int64_t index, int64_t due_ns):
        """Have a follow-up become due at `due_ns`; call it before `release()`, so that it can
        have the slot.
        """
        if not self._is_done and self.schedule.follow(index, due_ns):
            self._wake()  # it is sooner than the alarm is set for, perhaps even now

    def cancel_followups(self, int64_t count):
        """Cancel this many follow-ups, which will never be due."""
        if not self._is_done:
            self.schedule.cancel(count)
            self._finish_if_done()

    cdef int _wake(self) except -1:
        try:
            self._send_due()
        except Exception as fault:
            self._hook.on_fault(fault)
        return 0

    cdef int64_t _now(self) except? -1:
        return now_ns() if self._reads_kernel else self._now_ns()

    cdef int _send_due(self) except -1:
        """Send what is due, and set the alarm for what is due next."""
        cdef Schedule schedule = self.schedule
        cdef int64_t at_ns, turn_ends_ns, next_ns
        cdef bint is_cut_off
        if self._is_stopped:
            return 0
        at_ns = self._now()
        turn_ends_ns = at_ns + TURN_NS
        while at_ns <= turn_ends_ns and schedule.step(at_ns):
            call_with(self._send, schedule)
            at_ns = self._now()
        if not schedule.has_more():
            return self._finish_if_done()
        is_cut_off = at_ns > turn_ends_ns
        next_ns = at_ns if is_cut_off else schedule.next_ns
        if next_ns != NEVER:
            set_alarm(self._alarm, next_ns)  # in the past: at the loop's next turn
        # Reading gets as long as sending has had.
        self._hook.due_ns = at_ns + TURN_NS if is_cut_off else max(next_ns, at_ns)
        return 0

    cdef int _finish_if_done(self) except -1:
        if not self._is_done and not self.schedule.has_more():
            self._is_done = True
            if self._alarm is not None:
                self._alarm.close()
            self._hook.due_ns = NEVER
            self.all_sent.set()
        return 0


cdef int wake_pacer(object target, object nothing) except -1:
    """Have a pacer send what is due."""
    return (<Pacer>target)._wake()
