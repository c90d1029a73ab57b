"""Counters of live objects and allocated bytes, for debug builds.

Each module that cimports this header has counters of its own, so memory must be freed in the module that allocated it.
In other builds nothing is counted and no code is left of it.
"""

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
    void count_objects "loadgen_count"(int kind, int change) noexcept nogil
    void count_allocated "loadgen_allocated"(const void *memory) noexcept nogil
    void count_freed "loadgen_freed"(const void *memory) noexcept nogil

cdef enum:
    BYTES
    RECORDS
    RESPONSES
    HISTOGRAMS
    VOCABULARIES
    STREAMS
