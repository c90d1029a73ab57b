# cython: language_level=3
"""The C side of a connection to a server."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.http1 cimport Response
from loadgen.core.read_loop cimport ReadLoop, SendHook


@cython.final
cdef class Connection:
    cdef public object transport, owner, handle, tap
    cdef public int64_t idle_since
    cdef public bint lost
    cdef readonly int64_t requests
    cdef Response response
    cdef ReadLoop read_loop
    cdef SendHook hook
    cdef int socket_fd
    cdef int fd  # the same while the read loop reads it, else -1
    cdef bint is_plain  # the read loop can read it: no TLS, and aiohttp's reader has not taken over
    cdef bint uses_loop  # the event loop reads it
    cdef object error
    cdef int _read_directly(self) except -1
    cdef int _fall_back_to_loop(self) except -1
    cdef int _received(self, const char *p, Py_ssize_t n, int64_t at_ns) except -1
