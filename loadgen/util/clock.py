"""The monotonic clock (`time.monotonic_ns()`, CLOCK_MONOTONIC on Linux) and an alarm on it for
event loops.

Code that waits takes a `Clock`: `KERNEL`, or in tests a clock of virtual time.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from loadgen.util.timerfd import TimerfdAlarm, is_supported

NS_PER_S = 1_000_000_000

READINGS = 9  # pairs of readings of both clocks, the closest of which counts

now_ns = time.monotonic_ns


def unix_ns(monotonic_ns: int) -> int:
    """Convert a time of CLOCK_MONOTONIC to ns since 1970, as the system's clock is set now.

    It is exact to the time between two readings, well below a microsecond on an idle processor.
    """
    before, real, after = min(
        ((now_ns(), time.time_ns(), now_ns()) for _ in range(READINGS)),
        key=lambda readings: readings[2] - readings[0],
    )
    return monotonic_ns + real - (before + after) // 2


class AnyAlarm(Protocol):
    """Calls back once at a set time."""

    def set(self, due_ns: int) -> None:
        """Call back once at or after `due_ns`, in place of an earlier time; at the loop's next
        turn if it is past.
        """

    def close(self) -> None:
        """Cancel the alarm for good. It may be closed twice."""


class Clock(Struct, frozen=True):
    """A source of time, with alarms.

    Attributes:
        now_ns: Returns the time, ns. The kernel's clock is `time.monotonic_ns()`.
        alarm: Creates an alarm that calls back in an event loop.
    """

    now_ns: Callable[[], int]
    alarm: Callable[[asyncio.AbstractEventLoop, Callable[[], object]], AnyAlarm]


class Readers(Protocol):
    """Watches file descriptors: an event loop, or the read loop of the client."""

    def add_reader(self, fd: int, callback: Callable[[], object]) -> object:
        """Call back each time `fd` is readable."""

    def remove_reader(self, fd: int) -> object:
        """Stop watching `fd`."""


class LoopAlarm:
    """Alarm by the timers of the event loop, for systems without timerfd.

    A timer that fires early is set again. On uvloop the last millisecond is spent in turns of the
    loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        self._loop, self._callback = loop, callback
        self._due_ns = 0
        self._handle: asyncio.Handle | None = None

    def set(self, due_ns: int) -> None:
        """Call back once `now_ns()` reaches `due_ns`, which replaces an earlier time."""
        self.close()
        self._due_ns = due_ns
        self._handle = self._loop.call_later(max(0, due_ns - now_ns()) / NS_PER_S, self._ring)

    def close(self) -> None:
        """Cancel the alarm. It may be closed twice."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _ring(self) -> None:
        if now_ns() < self._due_ns:
            self.set(self._due_ns)
        else:
            self._handle = None
            self._callback()


Alarm = TimerfdAlarm if is_supported else LoopAlarm
KERNEL = Clock(now_ns, Alarm)


def clock_for(readers: Readers) -> Clock:
    """Return the kernel's clock, with alarms that are watched by `readers`, in one queue with
    what it reads.
    """
    if Alarm is LoopAlarm:
        return KERNEL
    return Clock(now_ns, lambda loop, callback: TimerfdAlarm(readers, callback))
