# cython: language_level=3
"""The C side of Counter."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.accumulator cimport Tally
from loadgen.core.record cimport Record
from loadgen.core.request_rows cimport RequestRows


@cython.final
cdef class Counter:
    cdef readonly int64_t ended, ok
    cdef readonly dict finishes, early_stops
    cdef Tally _tally
    cdef RequestRows _rows
    cdef object _add_more
    cdef bint _always
    cdef int64_t _silence_ns
    cdef list _parts  # Counters of the first target in the order of the classes, then the next
    cdef Py_ssize_t _classes
    cpdef add(self, Record record)
    cdef bint _has_more(self, Record record) noexcept
