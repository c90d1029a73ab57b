# cython: language_level=3
"""LoopProbe: measures how long a token may wait in the event loop before it is stamped.

Budget per alarm: a pass over the lateness of the last RECENT, and two counts in a histogram. Where
requests are few, alarms are most of what wakes this thread.
"""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.histogram cimport Histogram
from loadgen.core.read_loop cimport STALL_NS, SendHook
from loadgen.util.method cimport method_of
from loadgen.util.timerfd cimport set_alarm

import asyncio

from loadgen.core.read_loop import NEVER

PERIOD_NS = 10_000_000
# Where stamps of the kernel tell the arrival of all tokens, the loop's lateness bounds no time,
# and a hundred alarms per second would cost a fifth of what 500 requests/s cost.
STAMPED_PERIOD_NS = 50_000_000

cpdef enum:
    RECENT = 100  # alarms: a second at PERIOD_NS


@cython.final
cdef class LoopProbe:
    """Alarms at regular times, in `with`; how late the loop comes to them, ns, is added to
    `stalls`.

    The kernel signals an alarm as it signals a stream with something to read, and the loop comes to
    both in the order in which they became ready. So an alarm waits as long as a token that came
    when it was due. Each alarm counts once, also those missed while the loop was away, and once
    more for every read since the one before: so a hundredth of `stalls` is a hundredth of the
    tokens where there are many, and of the time where there are few. Reads between two alarms count
    with the greater lateness of the two.

    The hook is told by how much reads may have been late at most, over the last RECENT alarms. A
    stall may have begun before the alarm was due, but not before the alarm before it: since that
    was due, the loop has asked for what can be read. What is read together with an alarm may have
    come before it, but not before the alarm before.

    Alarms are STAMPED_PERIOD_NS apart once RECENT of them have passed since the last read whose
    tokens the lateness of the loop bounds; before, PERIOD_NS.

    Args:
        clock: The `Clock` of the alarms.
        hook: The hook of the connections; counts their reads.
        stalls: The histogram that gets the lateness.
    """
    cdef object _clock, _now_ns, _alarm
    cdef SendHook _hook
    cdef Histogram _stalls
    cdef int64_t _period_ns, _stamped_period_ns  # between alarms: often, and where stamps tell all
    cdef int64_t _due_ns, _late_ns  # of the next alarm, and of the last one
    cdef int64_t _asked_ns  # when the last alarm was due
    cdef int64_t _reads, _bounded_reads  # that the hook had counted at the last alarm
    cdef int64_t[RECENT] _recent  # how late reads may have been at the last alarms, a ring
    cdef int64_t _alarms
    cdef int64_t _stamped_alarms  # since the last read that the lateness bounds

    def __init__(self, clock, SendHook hook not None, Histogram stalls not None):
        self._clock, self._now_ns = clock, clock.now_ns
        self._hook, self._stalls = hook, stalls

    def __enter__(self):
        cdef int i
        self._alarm = self._clock.alarm(asyncio.get_running_loop(), method_of(self, on_alarm))
        self._period_ns, self._stamped_period_ns = PERIOD_NS, STAMPED_PERIOD_NS
        self._asked_ns = self._now_ns()
        self._due_ns = self._asked_ns + self._period_ns
        self._late_ns = self._alarms = self._stamped_alarms = 0
        self._reads, self._bounded_reads = self._hook.reads, self._hook.loop_bounded_reads
        for i in range(RECENT):
            self._recent[i] = -NEVER
        self._alarm.set(self._due_ns)

    def __exit__(self, *error):
        self._hook.is_sparse = False
        self._hook.late_ns = self._hook.alarm_ns = NEVER
        self._alarm.close()

    cdef int _on_alarm(self) except -1:
        cdef SendHook hook = self._hook
        cdef int64_t at_ns = self._now_ns(), due_ns = self._due_ns
        cdef int64_t late_ns = at_ns - due_ns, period_ns
        cdef int i
        if hook.reads > self._reads:
            self._stalls.add(max(late_ns, self._late_ns), hook.reads - self._reads)
        if hook.loop_bounded_reads > self._bounded_reads:
            self._bounded_reads, self._stamped_alarms = hook.loop_bounded_reads, 0
        else:
            self._stamped_alarms += 1
        hook.is_sparse = self._stamped_alarms >= RECENT
        period_ns = self._stamped_period_ns if hook.is_sparse else self._period_ns
        while self._due_ns <= at_ns:
            self._stalls.add(at_ns - self._due_ns, 1)
            self._due_ns += period_ns
        self._late_ns, self._reads = late_ns, hook.reads
        if late_ns > STALL_NS:
            hook.stalled_ns = at_ns
            late_ns = at_ns - self._asked_ns  # of what was read with it, at most
        self._recent[self._alarms % RECENT] = late_ns
        self._alarms += 1
        hook.late_ns = self._recent[0]
        for i in range(1, RECENT):
            hook.late_ns = max(hook.late_ns, self._recent[i])
        hook.handled_ns, self._asked_ns = self._asked_ns, due_ns
        hook.alarm_ns = self._due_ns
        return set_alarm(self._alarm, self._due_ns)


cdef int on_alarm(object target, object nothing) except -1:
    """Measure how late an alarm of the probe is."""
    return (<LoopProbe>target)._on_alarm()
