# cython: language_level=3
"""The times that a server has said of a request (`loadgen.core.server_times`)."""
from libc.stdint cimport int64_t

cdef enum:
    TIMES = 6  # how many quantities there are
    NOT_SAID = -1
    # Members of an event that may say times: their numbers.
    TIMES_METRICS = 0
    TIMES_TIMINGS = 1
    TIMES_STATS = 2
    TIMES_TIME_INFO = 3
    TIMES_USAGE = 4
    TIMES_META_INFO = 5
    PLACES_OF_TIMES = 6

cdef struct ServerTimes:
    int64_t by  # who has said one, from 1: the number of its name; 0: nobody has
    int64_t[TIMES] ns  # of each quantity, or NOT_SAID


cdef inline void clear_times(ServerTimes *times) noexcept nogil:
    """Set that none is known."""
    cdef int i
    times.by = 0
    for i in range(TIMES):
        times.ns[i] = NOT_SAID


cdef inline void merge_times(ServerTimes *times, const ServerTimes *said) noexcept nogil:
    """Add what was said."""
    cdef int i
    if said.by:
        times.by = said.by
    for i in range(TIMES):
        if said.ns[i] != NOT_SAID:
            times.ns[i] = said.ns[i]
