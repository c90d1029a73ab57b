# cython: language_level=3
"""A byte buffer that grows by doubling. Debug builds count its memory in the module that appends to it."""
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from loadgen.core.c.leak_count cimport count_allocated, count_freed


cdef struct Buffer:
    char *data
    Py_ssize_t size
    Py_ssize_t capacity


cdef inline int append_bytes(Buffer *buffer, const char *p, Py_ssize_t n) except -1:
    """Copy n bytes behind those of the buffer.

    Raises:
        MemoryError: There is no memory for them.
    """
    cdef char *grown
    cdef Py_ssize_t capacity
    if n == 0:  # buffer.data and p may be NULL, which memcpy must not be given
        return 0
    if buffer.size + n > buffer.capacity:
        capacity = max(buffer.size + n, 2 * buffer.capacity, 256)
        count_freed(buffer.data)
        grown = <char *>realloc(buffer.data, capacity)
        if grown == NULL:
            raise MemoryError()
        count_allocated(grown)
        buffer.data, buffer.capacity = grown, capacity
    memcpy(buffer.data + buffer.size, p, n)
    buffer.size += n
    return 0


cdef inline void free_buffer(Buffer *buffer) noexcept:
    """Free the memory of a buffer that is not used again."""
    count_freed(buffer.data)
    free(buffer.data)
