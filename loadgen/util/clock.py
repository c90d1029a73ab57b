"""The monotonic clock (`time.monotonic_ns()`, CLOCK_MONOTONIC on Linux) and an alarm on it for
event loops.

Code that waits takes a `Clock`: `KERNEL`, or in tests a clock of virtual time. `clock.pxd` gives
compiled modules the same `now_ns`, inlined.
"""

import asyncio
import ctypes
import os
import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

NS_PER_S = 1_000_000_000
# From <linux/time.h> and <sys/timerfd.h>; the numbers are part of the kernel's interface.
_CLOCK_MONOTONIC, _TFD_TIMER_ABSTIME = 1, 1
_TFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC

now_ns = time.monotonic_ns


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


class _TimeSpec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("it_interval", _TimeSpec), ("it_value", _TimeSpec))


# Through PyDLL, since handing the GIL over and back would cost more than these calls, none of which
# blocks.
_libc = ctypes.PyDLL(None, use_errno=True)


class TimerfdAlarm:
    """Alarm by a Linux timerfd: calls `callback()` in `loop` at a set time, accurate to
    microseconds.

    The loop watches the timerfd, because uvloop rounds `call_later` to whole milliseconds, and
    asyncio waits in epoll for whole milliseconds. Call `close()` after use.

    Raises:
        OSError: No timer is available, usually for lack of file descriptors.
    """

    def __init__(self, loop: Readers, callback: Callable[[], object]) -> None:
        self._loop, self._callback = loop, callback
        self._fd: int = _libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_FLAGS)
        if self._fd < 0:
            raise _os_error("timerfd_create")
        spec = _TimerSpec()
        # Built once: `set` writes two numbers and passes the same arguments.
        self._due = spec.it_value
        self._arguments = (_TFD_TIMER_ABSTIME, ctypes.byref(spec), None)
        self._settime = _libc.timerfd_settime
        loop.add_reader(self._fd, self._ring)

    def set(self, due_ns: int) -> None:
        """Call back once `now_ns()` reaches `due_ns`, which replaces an earlier time."""
        # All zeros would disarm the timer.
        self._due.tv_sec, self._due.tv_nsec = divmod(max(due_ns, 1), NS_PER_S)
        if self._settime(self._fd, *self._arguments):
            raise _os_error("timerfd_settime")

    def close(self) -> None:
        """Cancel the alarm for good and close its file descriptor. It may be closed twice."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _ring(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return  # set anew since it became readable
        self._callback()


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


Alarm = TimerfdAlarm if hasattr(_libc, "timerfd_create") else LoopAlarm
KERNEL = Clock(now_ns, Alarm)


def clock_for(readers: Readers) -> Clock:
    """Return the kernel's clock, with alarms that are watched by `readers`, in one queue with
    what it reads.
    """
    if Alarm is LoopAlarm:
        return KERNEL
    return Clock(now_ns, lambda loop, callback: TimerfdAlarm(readers, callback))


def _os_error(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")
