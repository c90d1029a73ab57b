# cython: language_level=3
"""The C side of events that are written at set times."""
from libc.stdint cimport int64_t

from loadgen.engines.sim.heap cimport Heap
from loadgen.engines.sim.outlet cimport Outlet


cdef class Planned(Outlet):
    cdef bytes _event, _after
    cdef Py_ssize_t _plan_at, _write_at
    cdef const int64_t[::1] _plan
    cdef int64_t[::1] _writes, _written
    cdef readonly Py_ssize_t written

    cdef int64_t _write_next(self) except -1


cdef class Ticker:
    cdef Heap _heap
    cdef object _on_end
