"""A guard around heavy imports: NumPy starts no threads."""

import contextlib
import os
from collections.abc import Iterator

from loadgen.util.machine import BLAS_THREADS


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Set the BLAS thread count to 1 while NumPy is imported, unless the user has set it.

    A run does no linear algebra, and idle BLAS threads would spin for a tenth of a second.
    Processes that are started later do not inherit the setting.
    """
    setting = os.environ.get(BLAS_THREADS)
    os.environ[BLAS_THREADS] = setting or "1"
    try:
        yield
    finally:
        if setting is None:
            del os.environ[BLAS_THREADS]
