"""Importing: what a Ctrl-C must not disturb, and what must not keep the processors busy."""

import contextlib
import os
import signal
from collections.abc import Iterator

from loadgen.util.machine import BLAS_THREADS


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let a Ctrl-C wait: SciPy's compiled modules make another error of one that comes while they are imported."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Have NumPy, if it is imported now, start no threads for linear algebra, of which a run has none.

    They would spin for a tenth of a second. What is launched later inherits nothing of this.
    """
    given = os.environ.get(BLAS_THREADS)
    os.environ[BLAS_THREADS] = given or "1"
    try:
        yield
    finally:
        if given is None:
            del os.environ[BLAS_THREADS]
