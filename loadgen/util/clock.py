"""The clock: that of `time.monotonic_ns()`, on Linux CLOCK_MONOTONIC, and an alarm on it for event loops.

What runs on the clock is given a `Clock`: `KERNEL`, or in a test one whose time is virtual. `clock.pxd` beside this
file gives compiled modules the same `now_ns`, inlined.
"""

import asyncio
import ctypes
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

NS_PER_S = 1_000_000_000
# From <linux/time.h> and <sys/timerfd.h>; the numbers are part of the kernel's interface.
_CLOCK_MONOTONIC, _TFD_TIMER_ABSTIME = 1, 1
_TFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC

now_ns = time.monotonic_ns


class AnyAlarm(Protocol):
    """Something that calls back at a time set before."""

    def set(self, due_ns: int) -> None:
        """Ring once at or after `due_ns` instead of any time set before; if it is past, at the loop's next turn."""

    def close(self) -> None:
        """Never ring again; closing twice does no harm."""


@dataclass(frozen=True, slots=True)
class Clock:
    """What the time is, and how to be called at one.

    Attributes:
        now_ns: The time, ns; of the kernel: that of `time.monotonic_ns()`.
        alarm: Makes an alarm that calls back in a loop.
    """

    now_ns: Callable[[], int]
    alarm: Callable[[asyncio.AbstractEventLoop, Callable[[], object]], AnyAlarm]


class Readers(Protocol):
    """Who calls back when there is something to read: an event loop, or a `ReadLoop`."""

    def add_reader(self, fd: int, callback: Callable[[], object]) -> object:
        """Call back whenever `fd` can be read."""

    def remove_reader(self, fd: int) -> object:
        """Call back no more."""


class _TimeSpec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("it_interval", _TimeSpec), ("it_value", _TimeSpec))


# Through PyDLL, since handing the GIL over and back would cost more than these calls, none of which blocks.
_libc = ctypes.PyDLL(None, use_errno=True)


class TimerfdAlarm:
    """Calls `callback()` in `loop` once at or after a set time: `Alarm` on Linux, good to microseconds.

    A Linux timerfd watched by the loop, because uvloop rounds `call_later` to whole milliseconds, and asyncio
    has epoll wait in whole milliseconds. Call `close()` in the end.

    Raises:
        OSError: No timer can be had (of file descriptors, most likely).
    """

    def __init__(self, loop: Readers, callback: Callable[[], object]) -> None:
        self._loop, self._callback = loop, callback
        self._fd: int = _libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_FLAGS)
        if self._fd < 0:
            raise _os_error("timerfd_create")
        spec = _TimerSpec()
        # Made once: setting the alarm writes two numbers and passes the same arguments.
        self._due = spec.it_value
        self._arguments = (_TFD_TIMER_ABSTIME, ctypes.byref(spec), None)
        self._settime = _libc.timerfd_settime
        loop.add_reader(self._fd, self._ring)

    def set(self, due_ns: int) -> None:
        """Ring once `now_ns()` has reached `due_ns` instead of any time set before; if it is past, at the next turn."""
        # All zeros would disarm the timer.
        self._due.tv_sec, self._due.tv_nsec = divmod(max(due_ns, 1), NS_PER_S)
        if self._settime(self._fd, *self._arguments):
            raise _os_error("timerfd_settime")

    def close(self) -> None:
        """Never ring again, and give the file descriptor back; closing twice does no harm."""
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
    """Calls `callback()` in `loop` once at or after a set time: `Alarm` where there is no timerfd.

    A loop's own timers, asked again when they come early; on uvloop the last millisecond is spent turning.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        self._loop, self._callback = loop, callback
        self._due_ns = 0
        self._handle: asyncio.Handle | None = None

    def set(self, due_ns: int) -> None:
        """Ring once `now_ns()` has reached `due_ns` instead of any time set before; if it is past, at the next turn."""
        self.close()
        self._due_ns = due_ns
        self._handle = self._loop.call_later(max(0, due_ns - now_ns()) / NS_PER_S, self._ring)

    def close(self) -> None:
        """Do not ring; closing twice does no harm."""
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


def in_line(readers: Readers) -> Clock:
    """The kernel's clock, with alarms that ring in one line with all that is read by `readers`."""
    if Alarm is LoopAlarm:
        return KERNEL
    return Clock(now_ns, lambda loop, callback: TimerfdAlarm(readers, callback))


def _os_error(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")
