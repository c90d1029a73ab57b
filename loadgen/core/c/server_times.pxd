# cython: language_level=3
"""The times that a server has said of a request (`loadgen.core.server_times`)."""
from libc.stdint cimport int64_t

cdef enum:
    TIMES = 6  # how many quantities there are
    # Their numbers; QUANTITIES has their names.
    FRONT = 0
    QUEUE = 1
    PREFILL = 2
    DECODE = 3
    TOTAL = 4
    HEADERS = 5
    SLACK_NS = 1000000  # what whole milliseconds and the clock of a server can add
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


cdef inline bint exceed(const ServerTimes *times, int64_t first_ns, int64_t last_ns,
                        int64_t head_ns) noexcept nogil:
    """Return whether a server says more than can be.

    Args:
        first_ns: From the sending of the request to its first token.
        last_ns: From there to its last one.
        head_ns: From there to the first byte of the response.
    """
    cdef int64_t before = (
        max(times.ns[FRONT], 0) + max(times.ns[QUEUE], 0) + max(times.ns[PREFILL], 0)
    )
    return (
        before > first_ns + SLACK_NS
        or max(before + times.ns[DECODE], times.ns[TOTAL]) > last_ns + SLACK_NS
        or times.ns[HEADERS] > head_ns + SLACK_NS
    )
