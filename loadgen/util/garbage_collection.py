"""Garbage collection while the clock runs: little to look at, and every pause measured."""

import contextlib
import gc
from collections.abc import Callable, Iterator

from loadgen.util.clock import now_ns


@contextlib.contextmanager
def frozen() -> Iterator[None]:
    """Keep what exists by now out of every collection in the block. Where the program has frozen before, do nothing."""
    gc.collect()
    ours = gc.get_freeze_count() == 0
    if ours:
        gc.freeze()
    try:
        yield
    finally:
        if ours:
            gc.unfreeze()


@contextlib.contextmanager
def pauses(record: Callable[[int], object]) -> Iterator[None]:
    """Call `record` with the length in ns of every collection in the block."""
    began = 0

    def paused(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = now_ns()
        elif began:
            record(now_ns() - began)

    gc.callbacks.append(paused)
    try:
        yield
    finally:
        gc.callbacks.remove(paused)
