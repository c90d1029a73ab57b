# cython: language_level=3
"""The C side of the connections to a server."""
from libc.stdint cimport int64_t

from loadgen.core.pool cimport Pool
from loadgen.core.read_loop cimport ReadLoop, SendHook
from loadgen.core.record cimport Record
from loadgen.core.request_encoder cimport RequestEncoder
from loadgen.core.stamped_connection cimport Connection


cdef class Connections:
    cdef public object on_end
    cdef public RequestEncoder encoder
    cdef readonly SendHook hook
    cdef readonly ReadLoop read_loop
    cdef readonly Pool pool
    cdef readonly set active
    cdef readonly int64_t heard_ns
    cpdef send(self, Record record, bytes body)
    cpdef send_on(self, Connection connection, Record record, bytes request)
    cpdef ended(self, Connection connection)
