# cython: language_level=3
"""The C side of connections that a server keeps open."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.http1 cimport Response


cdef class KeptConnection:
    cdef readonly Response response
    cdef public int64_t requests, idle_since
    cpdef bint is_open(self) except -1


@cython.final
cdef class KeepAlive:
    cdef public bint is_shown, closes_soon
    cdef public object limit_ns  # None: not known
    cdef public int64_t safe_ns
    cpdef int64_t rest_ns(self, Py_ssize_t count) except -1
    cpdef bint may_use(
        self, KeptConnection connection, KeptConnection oldest, int64_t at_ns
    ) except -1
