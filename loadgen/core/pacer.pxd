# cython: language_level=3
"""The C side of what hands out requests when they are due."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.read_loop cimport SendHook
from loadgen.core.schedule cimport Schedule


@cython.final
cdef class Pacer:
    cdef readonly Schedule schedule
    cdef readonly object all_sent
    cdef object _send, _clock, _now_ns, _alarm
    cdef bint _reads_kernel  # the clock is the kernel's: it is read without a call of Python
    cdef SendHook _hook
    cdef bint _is_stopped, _is_done
    cpdef int release(self) except -1
    cdef int _wake(self) except -1
    cdef int64_t _now(self) except? -1
    cdef int _send_due(self) except -1
    cdef int _finish_if_done(self) except -1
