# cython: language_level=3
"""The C side of when the bytes of a connection came."""
cimport cython
from libc.stdint cimport int64_t, uint64_t

from loadgen.core.c.kernel cimport TcpNumbers
from loadgen.core.c.segments cimport Segments
from loadgen.core.c.window cimport Window
from loadgen.core.kernel_clock cimport KernelClock
from loadgen.core.read_loop cimport ReadLoop
from loadgen.core.record cimport Record


@cython.final
cdef class Arrivals:
    cdef ReadLoop read_loop
    cdef KernelClock clock
    cdef int fd  # of the socket; -1: not known yet
    cdef Segments segments
    cdef TcpNumbers numbers_before  # at the end of the request before
    cdef Window window
    cdef int64_t latest_ns  # the time of the last read
    # The last read, and what holds until the next one:
    cdef int64_t at_ns, read_ns  # its stamp, else when it was read; when it was read
    cdef bint is_stamped  # by the kernel
    cdef bint is_reordered  # what the stamp is of may have been readable only later
    cdef bint emptied  # it took all that the socket held
    # The read before it:
    cdef bint was_emptied
    # its stamp if it emptied the socket, or when the request was sent: no byte that is read later
    # had come by then
    cdef int64_t emptied_ns
    cdef int open(self, int fd) except -1
    cdef int begin_response(self, int64_t sent_ns) except -1
    cdef int64_t add(self, Py_ssize_t n, int64_t read_ns, int64_t on_real_ns, bint emptied) except? -1
    cdef bint fills_window(self, Py_ssize_t n) except -1
    cdef int bound(self, Record record, bint ends_event, bint by_loop) except -1
    cdef int end_request(self, Record record, bint has_read) except -1
    cdef int end_read(self) except -1
