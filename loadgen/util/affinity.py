"""CPU affinity: keep the measuring thread and a server on the same machine on different cores."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def separate_cores(
    pids: Sequence[int],
    processor: int | None = None,
) -> Iterator[None]:
    """Pin the calling thread and some processes to different cores while the context lasts.

    The kernel likes to wake a reader on the core of the writer. There the reader waits until the writer yields, even
    when other cores are idle. A server on another machine does not slow its clients in this way.

    Does nothing without a process, with a single core, and where the system has no CPU affinity.

    Args:
        pids: The processes to keep away from the calling thread.
        processor: The core of the calling thread. None: the upper half of the usable cores.
    """
    if not pids or not hasattr(os, "sched_setaffinity"):
        yield
        return
    ours, theirs = os.sched_getaffinity(0), [thread for pid in pids for thread in _threads(pid)]
    own = set(sorted(ours)[len(ours) // 2 :]) if processor is None else {processor}
    with contextlib.ExitStack() as stack:
        if theirs and len(ours) > 1 and all(_pin(stack, thread, ours - own) for thread in theirs):
            _pin(stack, 0, own)
        yield


def _pin(stack: contextlib.ExitStack, thread: int, processors: set[int]) -> bool:
    """Pin a thread to some cores until the stack is unwound; returns whether the system allowed it."""
    try:
        before = os.sched_getaffinity(thread)
        os.sched_setaffinity(thread, processors)
    except OSError:  # not ours, or gone
        return False
    stack.callback(_restore, thread, before)
    return True


def _restore(thread: int, processors: set[int]) -> None:
    with contextlib.suppress(OSError):
        os.sched_setaffinity(thread, processors)


def _threads(pid: int) -> list[int]:
    try:
        return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
