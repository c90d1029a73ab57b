# cython: language_level=3
"""The C side of the way to a socket, and of the one output buffer."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcpy

cdef enum:
    # a size line of at most 16 hex digits and CR LF, and the CR LF that ends the chunk
    CHUNK_OVERHEAD = 20

cdef char *scratch  # the output buffer, used by one call at a time
cdef Py_ssize_t scratch_size
cdef int reserve(Py_ssize_t size) except -1


cdef inline char *put_bytes(char *out, bytes data) noexcept:
    memcpy(out, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return out + PyBytes_GET_SIZE(data)


cdef inline char *put_hex(char *out, Py_ssize_t value) noexcept:
    cdef int shift = 0
    while value >> (shift + 4):
        shift += 4
    while shift >= 0:
        out[0] = b"0123456789abcdef"[(value >> shift) & 15]
        out += 1
        shift -= 4
    return out


cdef class Outlet:
    cdef object _transport
    cdef int _fd
    cdef bint _buffered
    cdef Py_ssize_t _limit
    cdef readonly bint cut
    cdef readonly Py_ssize_t held_back

    cdef int _send(self, const char *data, Py_ssize_t size) except -1
    cdef int _hand_over(self, const char *data, Py_ssize_t size) except -1
