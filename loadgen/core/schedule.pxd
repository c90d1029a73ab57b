# cython: language_level=3
"""The C side of what decides which request may be sent."""
cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class Schedule:
    cdef readonly int64_t index, due_ns, ready_ns, next_ns, cut_off
    cdef readonly object cap
    cdef int64_t _start_ns, _until_ns, _change_ns
    cdef bint _closed_loop
    cdef object _numbers, _next_cap, _caps
    cdef int64_t _first, _step  # of the numbers, where they are a range
    cdef object _due_times  # an array
    cdef const int64_t *_due  # what it holds
    cdef Py_ssize_t _next, _count
    cdef int64_t _slots
    cdef int64_t _following  # not due yet, whether or not it is known when they are
    cdef list _later  # a heap of those of which it is known: due, number
    cdef object _waiting  # due, but without a slot: due, number
    cdef bint has_more(self) noexcept
    cpdef bint step(self, int64_t at_ns) except -1
    cpdef bint release(self) except -1
    cdef int64_t _number(self, Py_ssize_t i) except? -1
    cdef int _change_cap(self, int64_t at_ns) except -1
    cdef bint _is_over(self, int64_t ready_ns) except -1
    cdef int64_t _drop_all(self) except -1
