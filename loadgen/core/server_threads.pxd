# cython: language_level=3
"""The C side of what is known of a server's threads."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.record cimport Record


@cython.final
cdef class ServerThreads:
    cdef readonly int64_t starved
    cdef readonly bint are_held
    cdef public bint keeps_none, answers_several
    cdef int64_t _most_patience_ns
    # from a request to the first byte, on kept connections; before there is one, on any
    cdef int64_t _longest_ns
    cdef int64_t _latest_ns  # when the last of those that were answered on kept ones was sent
    cdef list _unanswered  # records of requests that were sent on new connections
    cdef Record _answered  # the last of those that have been answered since
    cdef Record _freed  # that for which idle connections were closed
    cdef int64_t _freed_ns  # when the first was closed for it
    cdef int _weight  # of this guess
    cdef int _proof
    cpdef sent(self, Record record)
    cpdef ended(self, Record record, int64_t at_ns)
    cdef int _see_freed(self, int64_t at_ns) except -1
    cdef int _drop_answered(self) except -1
