# cython: language_level=3
"""The C side of the connections to a server."""
from libc.stdint cimport int64_t

from loadgen.core.pool cimport Pool
from loadgen.core.read_loop cimport ReadLoop, SendHook
from loadgen.core.record cimport Record
from loadgen.core.request_encoder cimport RequestEncoder
from loadgen.core.stamped_connection cimport Connection, Owner


cdef class Connections(Owner):
    cdef public object on_end
    cdef public RequestEncoder encoder
    cdef readonly SendHook hook
    cdef readonly ReadLoop read_loop
    cdef readonly Pool pool
    cdef readonly set active
    cdef readonly int64_t heard_ns
    cdef int send_request(self, Record record, bytes body) except -1
    cdef int put(self, Connection connection, Record record, bytes request) except -1
