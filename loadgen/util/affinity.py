"""Placement: on which processors the measuring thread and a server on the same machine run."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def apart(pids: Sequence[int], processor: int | None = None) -> Iterator[None]:
    """While the context lasts, keep the calling thread on processors of its own and the processes off those.

    The kernel likes to wake who reads where the writer runs, and there a reader waits until the writer has done with
    its step, though the other processors are idle. A server on another machine does not do that to its clients.

    Does nothing without a process, with a single processor, and where the system does not let us choose.

    Args:
        pids: The processes.
        processor: The only one for the calling thread; None: the last half of them, so that it can give way to others.
    """
    if not pids or not hasattr(os, "sched_setaffinity"):
        yield
        return
    ours, theirs = os.sched_getaffinity(0), [thread for pid in pids for thread in _threads(pid)]
    own = set(sorted(ours)[len(ours) // 2 :]) if processor is None else {processor}
    with contextlib.ExitStack() as stack:
        if theirs and len(ours) > 1 and all(_moved(stack, thread, ours - own) for thread in theirs):
            _moved(stack, 0, own)
        yield


def _moved(stack: contextlib.ExitStack, thread: int, processors: set[int]) -> bool:
    """Have a thread run on these processors until the stack is unwound; False where that may not be."""
    try:
        before = os.sched_getaffinity(thread)
        os.sched_setaffinity(thread, processors)
    except OSError:  # not ours, or gone
        return False
    stack.callback(_back, thread, before)
    return True


def _back(thread: int, processors: set[int]) -> None:
    with contextlib.suppress(OSError):
        os.sched_setaffinity(thread, processors)


def _threads(pid: int) -> list[int]:
    try:
        return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
