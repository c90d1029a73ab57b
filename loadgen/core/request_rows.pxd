# cython: language_level=3
"""The C side of RequestRows."""
cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t

from loadgen.core.record cimport Record

cdef enum:
    BLOCK = 8192  # rows; one array that grew would fragment the heap


cdef packed struct Row:  # `metrics.snapshot.ROW` says what it holds
    uint32_t index
    int64_t sent, closed
    float ttft, e2el, tpot
    int32_t input_tokens, cached_tokens


@cython.final
cdef class RequestRows:
    cdef int64_t start_ns
    cdef bint from_due
    cdef list blocks  # full ones
    cdef Row[BLOCK] block
    cdef Py_ssize_t count  # rows in `block`
    cpdef add(self, Record record)
