# cython: language_level=3
"""The C side of the conversion of the kernel's stamps."""
cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class KernelClock:
    cdef readonly bint usable
    cdef readonly int64_t max_width_ns, steps, slack_ns
    cdef int64_t narrowest_ns  # distance of the two outer readings of a pair; 0: there was none
    cdef int64_t offset_ns, width_ns
    cdef int64_t paired_ns  # when the pair was taken; 0: there is none
    cdef int64_t refresh(self) except -1
    cdef inline int64_t monotonic_ns(self, int64_t at_ns) noexcept:
        """Convert a stamp on CLOCK_REALTIME, ns."""
        return at_ns - self.offset_ns
    cdef int compare(self, int64_t before_ns, int64_t on_real_ns, int64_t after_ns) except -1
