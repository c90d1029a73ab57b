"""Guards around heavy imports: signals wait, and NumPy starts no threads."""

import contextlib
import os
import signal
from collections.abc import Iterator

from loadgen.util.machine import BLAS_THREADS


@contextlib.contextmanager
def sigint_blocked() -> Iterator[None]:
    """Block SIGINT during imports: SciPy's compiled modules turn a Ctrl-C into another error."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Set the BLAS thread count to 1 while NumPy is imported, unless the user has set it.

    A run does no linear algebra, and idle BLAS threads would spin for a tenth of a second. Processes that are started
    later do not inherit the setting.
    """
    given = os.environ.get(BLAS_THREADS)
    os.environ[BLAS_THREADS] = given or "1"
    try:
        yield
    finally:
        if given is None:
            del os.environ[BLAS_THREADS]
