# cython: language_level=3
"""Outlet: the way to one socket for one response, at C speed.

A test server that streams 200,000 tokens/s has 5 us for each, and send(2) alone takes most of them.
So an event is put together in one C buffer and goes straight to the socket; the event loop's
transport is used only for what the socket did not take, and until its buffer is empty again
everything goes that way, so that the order holds.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport EAGAIN, EINTR, ENOBUFS, ENOMEM, errno
from libc.stdlib cimport realloc

from loadgen.core.c.memory cimport COUNTING, STREAMS, count_objects, live_count
from loadgen.core.c.kernel cimport MSG_DONTWAIT, MSG_NOSIGNAL, send


cdef char *scratch = NULL
cdef Py_ssize_t scratch_size = 0


cdef int reserve(Py_ssize_t size) except -1:
    """Make the output buffer at least `size` bytes; it lives as long as the process.

    Raises:
        MemoryError: There is no memory for them.
    """
    global scratch, scratch_size
    cdef char *grown
    if size > scratch_size:
        grown = <char *>realloc(scratch, size)
        if grown == NULL:
            raise MemoryError
        scratch, scratch_size = grown, size
    return 0


def live():
    """Return the number of this module's live objects; None unless it is a debug build."""
    return {"streams": live_count(STREAMS)} if COUNTING else None


cdef class Outlet:
    """The way to one socket for one response: straight to it, or through the transport while that
    holds anything.

    Nothing else may write to the transport until the response has ended.

    Args:
        transport: The asyncio or uvloop TCP transport to write to.
        limit: Bytes that may wait for a slow reader; above it the connection is cut.

    Attributes:
        cut: Whether the reader was too slow and the connection was cut.
        held_back: Pieces that the socket did not take, so that they waited in the transport.
    """

    def __cinit__(self):
        count_objects(STREAMS, 1)

    def __dealloc__(self):
        count_objects(STREAMS, -1)

    def __init__(self, transport, *, Py_ssize_t limit=4 << 20):
        self._transport, self._limit = transport, limit
        self._fd = transport.get_extra_info("socket").fileno()
        # An earlier response may still wait in the transport.
        self._buffered = True

    def send(self, bytes data not None):
        """Write `data` unchanged; the caller frames it."""
        if self._fd >= 0:
            self._send(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))

    def divert(self):
        """Write through the transport, until that holds nothing."""
        self._buffered = True

    def close(self):
        """Write nothing more, since the connection is gone or belongs to the next response."""
        self._fd = -1

    cdef int _send(self, const char *data, Py_ssize_t size) except -1:
        cdef Py_ssize_t sent
        if self._buffered:
            if self._transport.get_write_buffer_size():
                return self._hand_over(data, size)
            self._buffered = False
        sent = send(self._fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT)
        if sent == size:
            return 0
        if sent < 0:
            if errno not in (EAGAIN, EINTR, ENOBUFS, ENOMEM):
                self._fd = -1
                self._transport.abort()
                return 0
            sent = 0
        return self._hand_over(data + sent, size - sent)

    cdef int _hand_over(self, const char *data, Py_ssize_t size) except -1:
        """Have the transport write it when the socket has room; cut the connection if too much
        waits already.
        """
        if self._transport.get_write_buffer_size() + size > self._limit:
            self.cut = True
            self._fd = -1
            self._transport.abort()
            return 0
        self._buffered = True
        self.held_back += 1
        self._transport.write(PyBytes_FromStringAndSize(data, size))
        return 0
