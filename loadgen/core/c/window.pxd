# cython: language_level=3
"""Whether a server may have had to wait for the client: it does where the receive window is full
and the client reads late.
"""
from libc.stdint cimport int64_t

from loadgen.core.c.kernel cimport receive_buffer

cdef enum:
    LATE_READ_NS = 1000000
    RECEIVE_BUFFER = 128 << 10  # of a socket, where the kernel does not say
    MOST_UNREAD = 1 << 18  # what one read takes at most


cdef struct Window:
    int64_t most_unread  # so many unread bytes may close it: three quarters of it


cdef inline void learn_window(Window *window, int fd) noexcept:
    """Ask the kernel for the size of the window."""
    cdef int64_t size = receive_buffer(fd)
    window.most_unread = min((size if size > 0 else RECEIVE_BUFFER) * 3 // 8, MOST_UNREAD)


cdef inline bint fills_window(Window *window, int fd, Py_ssize_t n, int64_t late_ns) noexcept:
    """Return whether what was read may have filled the window, by its size before the read.

    Args:
        n: How many bytes were read.
        late_ns: How long after the last of them had come.
    """
    cdef bint was_filled = late_ns > LATE_READ_NS and n >= window.most_unread
    if 4 * n >= window.most_unread:  # the kernel enlarges it for a client that reads much
        learn_window(window, fd)
    return was_filled
