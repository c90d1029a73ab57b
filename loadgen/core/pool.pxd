# cython: language_level=3
"""The C side of the pool of connections to a server."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.keep_alive cimport KeepAlive, KeptConnection
from loadgen.core.record cimport Record
from loadgen.core.server_threads cimport ServerThreads


@cython.final
cdef class Pool:
    cdef readonly KeepAlive keep_alive
    cdef readonly ServerThreads threads
    cdef readonly Py_ssize_t waiting
    cdef public Py_ssize_t opening, beginning, peak
    cdef readonly bint is_short
    cdef object _close
    # record, bytes, and since when it waits, ns; the oldest first
    cdef object _in_time, _late
    cdef Py_ssize_t _in_use
    cdef int64_t _late_opened_ns  # those opened for late requests have had their time by then
    cdef list _unused  # in the order in which they were opened
    cdef object _resting  # deque
    cdef list _rested
    cpdef KeptConnection take(self, int64_t at_ns)
    cpdef begin_use(self)
    cpdef bint has_turn(self, Record record, int64_t at_ns) except -1
    cpdef wait(self, Record record, bytes request, int64_t at_ns)
    cpdef rest(self, KeptConnection connection, int64_t at_ns)
    cpdef Py_ssize_t ready(self, int64_t at_ns) except -1
    cpdef close_all(self)
    cdef bint _opens_ahead(self) except -1
    cdef Py_ssize_t _spare(self) except -1
    cdef int64_t _rest_ns(self) except -1
    cdef int _end_rests(self, int64_t at_ns) except -1
    cdef KeptConnection _take_older(self, int64_t at_ns)
    cdef KeptConnection _take_unused(self, int64_t at_ns)
    cdef int _lose(self, KeptConnection connection, int64_t at_ns) except -1
