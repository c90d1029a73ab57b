# cython: language_level=3
"""The events of a stream in order, as a run-length list. Events with tokens and equal flags form a run."""
from libc.stdint cimport int64_t

from loadgen.core.c.buffer cimport resized
from loadgen.core.c.event_flags cimport TOKENS

cdef enum:
    MAX_RUNS = 1 << 16  # after these no more are listed


cdef struct EventRun:
    int64_t flags  # what each event of the run says (event_flags)
    int64_t count  # token-bearing events with these flags that follow each other; 1 for any other event
    int64_t at_ns  # when the first of them came; 0 for token-bearing ones from a file


cdef struct EventRuns:
    EventRun *list
    Py_ssize_t count, capacity


cdef inline int append_run(EventRuns *runs, int64_t flags, int64_t count, int64_t at_ns) except -1:
    """List a run."""
    if runs.count == runs.capacity:
        runs.capacity = max(8, 2 * runs.capacity)
        runs.list = <EventRun *>resized(runs.list, runs.capacity * sizeof(EventRun))
    runs.list[runs.count] = EventRun(flags, count, at_ns)
    runs.count += 1
    return 0


cdef inline int append_event(EventRuns *runs, int64_t flags, int64_t at_ns) except -1:
    """List an event: extend the last run, or begin one."""
    if flags & TOKENS and 0 < runs.count <= MAX_RUNS and runs.list[runs.count - 1].flags == flags:
        runs.list[runs.count - 1].count += 1
    elif runs.count <= MAX_RUNS:
        append_run(runs, flags, 1, at_ns)
    return 0


cdef inline bint is_complete(const EventRuns *runs, int64_t events) noexcept:
    """Return whether the runs hold all of so many token-bearing events."""
    cdef int64_t listed = 0
    for i in range(runs.count):
        if runs.list[i].flags & TOKENS:
            listed += runs.list[i].count
    return runs.count <= MAX_RUNS and listed == events
