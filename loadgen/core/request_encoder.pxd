# cython: language_level=3
"""The C side of what makes the bytes of requests."""
cimport cython

from loadgen.core.record cimport Record


@cython.final
cdef class RequestEncoder:
    cdef str _run
    cdef list _heads
    cdef object _sign
    cdef bint _generates, _streams
    cpdef bytes encode(self, Record record, bytes body)
