"""The C face of the clock, inlined where it is cimported: there is no extension module behind it."""

from libc.stdint cimport int64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec


cdef inline int64_t now_ns() noexcept nogil:
    """Nanoseconds on CLOCK_MONOTONIC, as `time.monotonic_ns()`."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * <int64_t>1_000_000_000 + now.tv_nsec
