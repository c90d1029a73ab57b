"""Measures how long a token may wait in the event loop before it is stamped."""

import asyncio
from collections import deque

from loadgen.core.histogram import Histogram
from loadgen.core.read_loop import NEVER, STALL_NS, SendHook
from loadgen.util.clock import Clock

PERIOD_NS = 10_000_000
RECENT = 100  # alarms: a second at PERIOD_NS
# Where stamps of the kernel tell the arrival of all tokens, the loop's lateness bounds no time,
# and a hundred alarms per second would cost a fifth of what 500 requests/s cost.
STAMPED_PERIOD_NS = 50_000_000


class LoopProbe:
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
        clock: The clock of the alarms.
        hook: The hook of the connections; counts their reads.
        stalls: The histogram that gets the lateness.
    """

    def __init__(self, clock: Clock, hook: SendHook, stalls: Histogram) -> None:
        self._clock = clock
        self._now_ns = clock.now_ns
        self._hook = hook
        self._stalls = stalls

    def __enter__(self) -> None:
        self._alarm = self._clock.alarm(asyncio.get_running_loop(), self._on_alarm)
        self._asked_ns = self._now_ns()
        self._period_ns = PERIOD_NS
        self._due_ns = self._asked_ns + self._period_ns
        self._late_ns = 0
        self._reads = self._hook.reads
        self._bounded_reads = self._hook.loop_bounded_reads
        self._stamped_alarms = 0
        self._recent = deque[int](maxlen=RECENT)
        self._alarm.set(self._due_ns)

    def __exit__(self, *error: object) -> None:
        self._hook.is_sparse = False
        self._hook.late_ns = self._hook.alarm_ns = NEVER
        self._alarm.close()

    def _on_alarm(self) -> None:
        at_ns = self._now_ns()
        reads = self._hook.reads
        due_ns = self._due_ns
        late_ns = at_ns - due_ns
        stalls = self._stalls
        if reads > self._reads:
            stalls.record(max(late_ns, self._late_ns), reads - self._reads)
        if self._hook.loop_bounded_reads > self._bounded_reads:
            self._bounded_reads = self._hook.loop_bounded_reads
            self._stamped_alarms = 0
        else:
            self._stamped_alarms += 1
        self._hook.is_sparse = self._stamped_alarms >= RECENT
        self._period_ns = STAMPED_PERIOD_NS if self._hook.is_sparse else PERIOD_NS
        while self._due_ns <= at_ns:
            stalls.record(at_ns - self._due_ns)
            self._due_ns += self._period_ns
        self._late_ns = late_ns
        self._reads = reads
        if late_ns > STALL_NS:
            self._hook.stalled_ns = at_ns
            late_ns = at_ns - self._asked_ns  # of what was read with it, at most
        self._recent.append(late_ns)
        self._hook.late_ns = max(self._recent)
        self._hook.handled_ns = self._asked_ns
        self._asked_ns = due_ns
        self._hook.alarm_ns = self._due_ns
        self._alarm.set(self._due_ns)
