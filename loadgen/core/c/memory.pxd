# cython: language_level=3
"""Memory that grows, a byte buffer of it, and counters of what is live, for debug builds.

Each module that cimports this header has counters of its own, so memory must be freed in the module
that allocated it. In other builds nothing is counted, and no code of the counters is left.
"""
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy
from posix.mman cimport (
    MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap,
)

cdef extern from *:
    """
    #ifdef LOADGEN_DEBUG
    #ifdef __APPLE__
    #include <malloc/malloc.h>
    #define loadgen_size(memory) ((long long)malloc_size(memory))
    #else
    #include <malloc.h>
    #define loadgen_size(memory) ((long long)malloc_usable_size((void *)(memory)))
    #endif
    static long long loadgen_live[6];
    #define loadgen_counting 1
    #define loadgen_live_count(kind) loadgen_live[kind]
    #define loadgen_count(kind, change) ((void)(loadgen_live[kind] += (change)))
    #define loadgen_allocated(memory) ((void)(loadgen_live[0] += loadgen_size(memory)))
    #define loadgen_freed(memory) ((void)(loadgen_live[0] -= loadgen_size(memory)))
    #else
    #define loadgen_counting 0
    #define loadgen_live_count(kind) 0
    #define loadgen_count(kind, change) ((void)0)
    #define loadgen_allocated(memory) ((void)0)
    #define loadgen_freed(memory) ((void)0)
    #endif
    """
    bint COUNTING "loadgen_counting"
    long long live_count "loadgen_live_count"(int kind) noexcept nogil
    void count_objects "loadgen_count"(int kind, long long change) noexcept nogil
    void count_allocated "loadgen_allocated"(const void *memory) noexcept nogil
    void count_freed "loadgen_freed"(const void *memory) noexcept nogil

cdef enum:
    BYTES
    RECORDS
    RESPONSES
    HISTOGRAMS
    VOCABULARIES
    STREAMS


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


cdef inline void *zero_pages(size_t size) except NULL:
    """Return `size` bytes of zeros, of which each page takes memory once it is written to.

    calloc() writes the zeros itself where it uses memory that was freed.

    Raises:
        MemoryError: There is none.
    """
    cdef void *pages
    pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if pages == MAP_FAILED:
        raise MemoryError()
    count_objects(BYTES, size)
    return pages


cdef inline void free_pages(void *pages, size_t size) noexcept:
    """Free the memory of `zero_pages`; NULL is none."""
    if pages != NULL:
        count_objects(BYTES, -<long long>size)
        munmap(pages, size)


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


cdef inline int append(Buffer *buffer, const char *p, Py_ssize_t n, bint cumulative) except -1:
    """Copy n bytes behind those of the buffer; with `cumulative`, only what follows if they begin
    with all of these.

    Raises:
        MemoryError: There is no memory for them.
    """
    if cumulative and buffer.size and n >= buffer.size and memcmp(buffer.data, p, buffer.size) == 0:
        return append_bytes(buffer, p + buffer.size, n - buffer.size)
    return append_bytes(buffer, p, n)


cdef inline void free_buffer(Buffer *buffer) noexcept:
    """Free the memory of a buffer that is not used again."""
    count_freed(buffer.data)
    free(buffer.data)
