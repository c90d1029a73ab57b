"""Python's garbage collection: how often it runs, which objects it looks at, and the length of
each pause.
"""

import contextlib
import gc
from collections.abc import Callable, Iterator

THRESHOLD = 50_000  # objects made before a collection; Python's default is 700

_frozen_for_good = False


def collect_rarely() -> None:
    """Have this process collect a seventieth as often.

    Few of its objects are part of a cycle. A full collection would delay every stream, and imports
    cause many.
    """
    gc.set_threshold(THRESHOLD)


def freeze_for_good() -> None:
    """Exclude existing objects from collections, in a process of our own and in those that are
    forked from it.

    Without this, the first collection after a fork looks at all modules, and so copies their pages.
    """
    global _frozen_for_good
    _frozen_for_good = True
    gc.freeze()


@contextlib.contextmanager
def freeze() -> Iterator[None]:
    """Exclude existing objects from collections in the block, unless the program has called
    `gc.freeze` itself.
    """
    gc.collect()
    if _frozen_for_good:  # to count what is frozen takes milliseconds
        gc.freeze()
        yield
        return
    freezes = gc.get_freeze_count() == 0
    if freezes:
        gc.freeze()
    try:
        yield
    finally:
        if freezes:
            gc.unfreeze()


@contextlib.contextmanager
def record_pauses(record: Callable[[int], object]) -> Iterator[None]:
    """Measure each collection in the block.

    Args:
        record: Called with its length, ns.
    """
    # It imports asyncio, and every command imports this module first.
    from loadgen.util.clock import now_ns

    start_ns = 0

    def on_collection(phase: str, info: dict[str, int]) -> None:
        nonlocal start_ns
        if phase == "start":
            start_ns = now_ns()
        elif start_ns:
            record(now_ns() - start_ns)

    gc.callbacks.append(on_collection)
    try:
        yield
    finally:
        gc.callbacks.remove(on_collection)
