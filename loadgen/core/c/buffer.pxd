# cython: language_level=3
"""Memory that grows, and a byte buffer of it. Debug builds count memory in the module that allocates it."""
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy

from loadgen.core.c.leak_count cimport count_allocated, count_freed


cdef struct Buffer:
    char *data
    Py_ssize_t size
    Py_ssize_t capacity


cdef inline void *resized(void *memory, size_t size) except NULL:
    """Return `memory` with room for `size` bytes, which must not be 0; NULL allocates it.

    Raises:
        MemoryError: There is none.
    """
    cdef void *grown
    count_freed(memory)
    grown = realloc(memory, size)
    if grown == NULL:
        raise MemoryError()
    count_allocated(grown)
    return grown


cdef inline int append_bytes(Buffer *buffer, const char *p, Py_ssize_t n) except -1:
    """Copy n bytes behind those of the buffer.

    Raises:
        MemoryError: There is no memory for them.
    """
    cdef Py_ssize_t capacity
    if n == 0:  # buffer.data and p may be NULL, which memcpy must not be given
        return 0
    if buffer.size + n > buffer.capacity:
        capacity = max(buffer.size + n, 2 * buffer.capacity, 256)
        buffer.data = <char *>resized(buffer.data, capacity)
        buffer.capacity = capacity
    memcpy(buffer.data + buffer.size, p, n)
    buffer.size += n
    return 0


cdef inline int append(Buffer *buffer, const char *p, Py_ssize_t n, bint so_far) except -1:
    """Copy n bytes behind those of the buffer; with `so_far`, only what follows if they begin with all of these.

    Raises:
        MemoryError: There is no memory for them.
    """
    if so_far and buffer.size and n >= buffer.size and memcmp(buffer.data, p, buffer.size) == 0:
        return append_bytes(buffer, p + buffer.size, n - buffer.size)
    return append_bytes(buffer, p, n)


cdef inline void free_buffer(Buffer *buffer) noexcept:
    """Free the memory of a buffer that is not used again."""
    count_freed(buffer.data)
    free(buffer.data)
