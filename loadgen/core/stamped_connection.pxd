# cython: language_level=3
"""The C side of a connection to a server."""
cimport cython
from libc.stdint cimport int64_t

from loadgen.core.arrivals cimport Arrivals
from loadgen.core.keep_alive cimport KeptConnection
from loadgen.core.record cimport Record
from loadgen.core.read_loop cimport ReadLoop, SendHook


cdef class Owner:
    cdef int take_back(self, Connection connection) except -1


@cython.final
cdef class Connection(KeptConnection):
    cdef public object transport, owner, tap
    cdef public bint lost
    cdef readonly ReadLoop read_loop
    cdef SendHook hook
    cdef int socket_fd
    cdef int fd  # the same while the read loop reads it, else -1
    cdef bint is_readable  # the read loop can read it
    cdef bint uses_loop  # the event loop reads it
    cdef object error
    cdef object tls  # decrypts what is read and encrypts what is sent; None: neither
    cdef Arrivals arrivals
    cpdef int send(self, bytes request, Record record) except -1
    cdef int _take_back(self) except -1
    cdef int _read_directly(self) except -1
    cdef int _fall_back_to_loop(self) except -1
    cdef int _take_stamp_of_sent(self, Record record) except -1
    cdef bytes _decrypt(self, const char *p, Py_ssize_t n)
    cdef int _read(self, const char *p, Py_ssize_t n, int64_t read_ns, int64_t on_real_ns,
                   bint emptied) except -1
    cdef int _end_with(self, fault) except -1
    cdef int _received(self, const char *p, Py_ssize_t n, int64_t read_ns, int64_t on_real_ns,
                       bint emptied) except -1
    cdef bint _ends_event(self) noexcept
