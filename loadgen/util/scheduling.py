"""Scheduling by the kernel: on which cores threads run, and how soon a thread runs after it has
waited.
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

NICENESS = -10
SLICE_NS = 100_000  # the shortest that Linux accepts; its usual one was 1.4 ms on two processors
# Numbers of the system call; the C library may lack a function for it.
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_SCHED_OTHER = 0


@contextlib.contextmanager
def separate_cores(pids: Sequence[int], processor: int | None = None) -> Iterator[None]:
    """Pin the calling thread and some processes to different cores while the context lasts.

    The kernel likes to wake a reader on the core of the writer. There the reader waits until the
    writer yields, even when other cores are idle. A server on another machine does not slow its
    clients in this way.

    Does nothing without a process, with a single core, and on a system without CPU affinity.

    Args:
        pids: The processes to keep away from the calling thread.
        processor: The core of the calling thread. None: the upper half of the usable cores.
    """
    if not pids or not hasattr(os, "sched_setaffinity"):
        yield
        return
    usable = os.sched_getaffinity(0)
    threads: list[int] = []
    for pid in pids:
        with contextlib.suppress(OSError):  # it is gone
            threads += [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    reserved = set(sorted(usable)[len(usable) // 2 :]) if processor is None else {processor}
    with contextlib.ExitStack() as stack:
        if (
            threads
            and len(usable) > 1
            and all(_pin(stack, thread, usable - reserved) for thread in threads)
        ):
            _pin(stack, 0, reserved)
        yield


def _pin(stack: contextlib.ExitStack, thread: int, processors: set[int]) -> bool:
    """Pin a thread to some cores until the stack is unwound; returns whether the system allowed
    it.
    """
    try:
        before = os.sched_getaffinity(thread)
        os.sched_setaffinity(thread, processors)
    except OSError:  # not ours, or gone
        return False
    stack.callback(_restore, thread, before)
    return True


def _restore(thread: int, processors: set[int]) -> None:
    """Undo `_pin`, unless the thread is gone."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(thread, processors)


def wake_up_sooner() -> None:
    """Request a short slice of time, and a higher priority if that is allowed, for the calling
    thread.

    A priority that was chosen for it (`nice -n 10 loadgen run`) stays.

    Linux 6.12 and later first runs the thread whose slice ends first. A short slice takes no time
    from others: it is the same share of the time, in smaller pieces. The priority costs others
    little, as long as the thread mostly waits.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) == 0:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    number = _SCHED_SETATTR.get(os.uname().machine) if sys.platform == "linux" else None
    if number is not None:
        attributes = _Attributes(
            size=ctypes.sizeof(_Attributes),
            policy=_SCHED_OTHER,
            nice=os.getpriority(os.PRIO_PROCESS, 0),
            runtime=SLICE_NS,
        )
        ctypes.CDLL(None).syscall(number, 0, ctypes.byref(attributes), 0)


class _Attributes(ctypes.Structure):
    """`struct sched_attr` of <linux/sched/types.h>, as far as the first version goes."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )
