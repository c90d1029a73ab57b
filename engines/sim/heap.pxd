"""A heap of times, inlined where it is cimported: the earliest of many appointments, in C.

Entries hold borrowed pointers; whoever pushes one keeps what it points to alive until it is popped.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc
from loadgen.core.c.memory cimport count_allocated, count_freed


cdef struct Entry:
    int64_t at_ns
    void *item


cdef struct Heap:
    Entry *entries  # the earliest first; free() it in the end
    Py_ssize_t size
    Py_ssize_t room


cdef inline int push(Heap *heap, int64_t at_ns, void *item) except -1:
    """Add an appointment."""
    cdef Py_ssize_t i = heap.size, above
    cdef Entry *grown
    if heap.size == heap.room:
        count_freed(heap.entries)
        grown = <Entry *>realloc(heap.entries, max(64, 2 * heap.room) * sizeof(Entry))
        if grown == NULL:
            count_allocated(heap.entries)
            raise MemoryError
        count_allocated(grown)
        heap.entries, heap.room = grown, max(64, 2 * heap.room)
    heap.size += 1
    while i > 0:
        above = (i - 1) >> 1
        if heap.entries[above].at_ns <= at_ns:
            break
        heap.entries[i] = heap.entries[above]
        i = above
    heap.entries[i] = Entry(at_ns, item)
    return 0


cdef inline void postpone(Heap *heap, int64_t at_ns, void *item) noexcept:
    """Put this appointment in the place of the earliest; there must be one."""
    cdef Py_ssize_t i = 0, below = 1
    while below < heap.size:
        if below + 1 < heap.size and heap.entries[below + 1].at_ns < heap.entries[below].at_ns:
            below += 1
        if at_ns <= heap.entries[below].at_ns:
            break
        heap.entries[i] = heap.entries[below]
        i = below
        below = 2 * i + 1
    heap.entries[i] = Entry(at_ns, item)


cdef inline void pop(Heap *heap) noexcept:
    """Remove the earliest; there must be one."""
    cdef Entry last
    heap.size -= 1
    if heap.size:
        last = heap.entries[heap.size]
        postpone(heap, last.at_ns, last.item)
