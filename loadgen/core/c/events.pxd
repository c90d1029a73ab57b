# cython: language_level=3
"""The events of a record: arrays with an entry for each event with tokens, and a run-length list of
all events.

An array exists only from the first entry that needs it.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from loadgen.core.c.memory cimport count_freed, resized
from loadgen.core.event_flags cimport (
    BARE, CHOICE, CUMULATIVE, EMPTY, FINISH, ROLE, SILENT, TOKENS
)

cdef enum:
    # In `EventArrays.tokens`, of events without text that may yet prove to bear a token.
    MAYBE = -1
    MAYBE_LAST = -2  # with the finish reason
    # In `EventArrays.sources`: what the stamp of an event is.
    KERNEL = 0
    USER = 1  # when it was read: the kernel gave none
    REORDERED = 2  # when it was read, after segments that were lost or overtaken
    # So long after the stamp of its last segment a read is late: one in time takes a tenth of it.
    LATE_NS = 200000


cdef struct EventArrays:
    Py_ssize_t capacity
    int64_t *stamps_ns
    # when each event can have come at the earliest; NULL as long as all stamps are exact
    int64_t *earliest_ns
    int64_t *reads_ns  # when each event was read; NULL as long as that is the stamp
    int64_t *tokens  # tokens in each event, or MAYBE; NULL as long as each bears one
    int64_t *sources  # of their stamps; NULL as long as all are the kernel's


cdef inline int reserve(EventArrays *arrays, Py_ssize_t capacity) except -1:
    """Make room for this many events."""
    arrays.stamps_ns = <int64_t *>resized(arrays.stamps_ns, capacity * sizeof(int64_t))
    if arrays.earliest_ns != NULL:
        arrays.earliest_ns = <int64_t *>resized(arrays.earliest_ns, capacity * sizeof(int64_t))
    if arrays.reads_ns != NULL:
        arrays.reads_ns = <int64_t *>resized(arrays.reads_ns, capacity * sizeof(int64_t))
    if arrays.tokens != NULL:
        arrays.tokens = <int64_t *>resized(arrays.tokens, capacity * sizeof(int64_t))
    if arrays.sources != NULL:
        arrays.sources = <int64_t *>resized(arrays.sources, capacity * sizeof(int64_t))
    arrays.capacity = capacity
    return 0


cdef inline int count_tokens(EventArrays *arrays, Py_ssize_t events) except -1:
    """Count the tokens of each event from now on; each of the `events` until now bore one."""
    cdef Py_ssize_t i
    if arrays.tokens == NULL:
        arrays.tokens = <int64_t *>resized(NULL, arrays.capacity * sizeof(int64_t))
        for i in range(events):
            arrays.tokens[i] = 1
    return 0


cdef inline int put(EventArrays *arrays, Py_ssize_t i, int64_t at_ns, int64_t tokens) except -1:
    """Set event i, which is the next one: its stamp, and how many tokens it bears."""
    assert i < arrays.capacity
    if tokens != 1:
        count_tokens(arrays, i)
    arrays.stamps_ns[i] = at_ns
    if arrays.earliest_ns != NULL:
        arrays.earliest_ns[i] = at_ns
    if arrays.reads_ns != NULL:
        arrays.reads_ns[i] = at_ns
    if arrays.tokens != NULL:
        arrays.tokens[i] = tokens
    if arrays.sources != NULL:
        arrays.sources[i] = KERNEL
    return 0


cdef inline int64_t *copy_of_stamps(EventArrays *arrays, Py_ssize_t events) except NULL:
    """Return an array that begins with the stamps of this many events."""
    cdef int64_t *copy = <int64_t *>resized(NULL, arrays.capacity * sizeof(int64_t))
    memcpy(copy, arrays.stamps_ns, events * sizeof(int64_t))
    return copy


cdef inline int put_read(EventArrays *arrays, Py_ssize_t first, Py_ssize_t end,
                         int64_t read_ns) except -1:
    """Set when the events from number `first` to the last, before `end`, were read."""
    if arrays.reads_ns == NULL:
        if read_ns == arrays.stamps_ns[end - 1]:
            return 0
        arrays.reads_ns = copy_of_stamps(arrays, end)
    for i in range(first, end):
        arrays.reads_ns[i] = read_ns
    return 0


cdef inline int put_source(EventArrays *arrays, Py_ssize_t first, Py_ssize_t end,
                           int64_t source) except -1:
    """Set what the stamps of the events from number `first` to the last, before `end`, are."""
    cdef Py_ssize_t i
    if arrays.sources == NULL:
        arrays.sources = <int64_t *>resized(NULL, arrays.capacity * sizeof(int64_t))
        for i in range(first):
            arrays.sources[i] = KERNEL
    for i in range(first, end):
        arrays.sources[i] = source
    return 0


cdef inline int64_t earliest(const EventArrays *arrays, Py_ssize_t i) noexcept:
    """Return when event i can have come at the earliest, ns."""
    return arrays.stamps_ns[i] if arrays.earliest_ns == NULL else arrays.earliest_ns[i]


cdef inline int64_t count_inexact(const EventArrays *arrays, Py_ssize_t events) noexcept:
    """Count the events that may have come before their stamp."""
    cdef int64_t count = 0
    if arrays.earliest_ns != NULL:
        for i in range(events):
            count += arrays.earliest_ns[i] < arrays.stamps_ns[i]
    return count


cdef inline int64_t count_late(const EventArrays *arrays, Py_ssize_t events) noexcept:
    """Count the events that may have come before their stamp, and that were read late."""
    cdef int64_t count = 0
    if arrays.earliest_ns != NULL and arrays.reads_ns != NULL:
        for i in range(events):
            count += (
                arrays.earliest_ns[i] < arrays.stamps_ns[i]
                and arrays.reads_ns[i] - arrays.stamps_ns[i] > LATE_NS
            )
    return count


cdef inline void free_array(int64_t *array) noexcept:
    """Free an array; NULL: there is none."""
    count_freed(array)
    free(array)


cdef inline void drop_tokens(EventArrays *arrays) noexcept:
    """Let each event bear one token."""
    free_array(arrays.tokens)
    arrays.tokens = NULL


cdef inline int mark_maybe_last(EventArrays *arrays, Py_ssize_t event,
                                Py_ssize_t events) except -1:
    """Mark one of the `events` as MAYBE_LAST."""
    count_tokens(arrays, events)
    arrays.tokens[event] = MAYBE_LAST
    return 0


cdef inline int64_t bear_tokens(
    EventArrays *arrays, Py_ssize_t first, Py_ssize_t end, int64_t missing
) noexcept:
    """Let those of some events that are MAYBE bear a token each, as long as one is missing.

    Returns how many are missing then.
    """
    cdef Py_ssize_t i
    for i in range(first, end):
        if arrays.tokens[i] == MAYBE and missing > 0:
            arrays.tokens[i] = 1
            missing -= 1
    return missing


cdef inline Py_ssize_t keep_events(EventArrays *arrays, Py_ssize_t events,
                                   Py_ssize_t *followed) noexcept:
    """Take the events that only might have borne a token out of the arrays; return how many stay.

    Args:
        followed: The number of an event that stays, which becomes its new one; -1: none.
    """
    cdef Py_ssize_t i, kept = 0, new = -1
    for i in range(events):
        if arrays.tokens[i] < 0:
            continue
        if i == followed[0]:
            new = kept
        arrays.stamps_ns[kept] = arrays.stamps_ns[i]
        arrays.tokens[kept] = arrays.tokens[i]
        if arrays.earliest_ns != NULL:
            arrays.earliest_ns[kept] = arrays.earliest_ns[i]
        if arrays.reads_ns != NULL:
            arrays.reads_ns[kept] = arrays.reads_ns[i]
        if arrays.sources != NULL:
            arrays.sources[kept] = arrays.sources[i]
        kept += 1
    followed[0] = new
    return kept


cdef inline void free_arrays(EventArrays *arrays) noexcept:
    """Free the arrays, which are not used again."""
    free_array(arrays.stamps_ns)
    free_array(arrays.earliest_ns)
    free_array(arrays.reads_ns)
    free_array(arrays.tokens)
    free_array(arrays.sources)


cdef enum:
    MAX_RUNS = 1 << 16  # that are listed


cdef struct EventRun:
    int64_t flags  # what each event of the run says (event_flags)
    # token-bearing events with these flags that follow each other; 1 for any other event
    int64_t count
    int64_t at_ns  # when the first of them came; 0 for token-bearing ones from a file


cdef struct EventRuns:
    EventRun *list
    Py_ssize_t count, capacity
    bint is_cut  # whether an event came that is not listed


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
    if flags & TOKENS and runs.count and runs.list[runs.count - 1].flags == flags:
        runs.list[runs.count - 1].count += 1
    elif runs.count < MAX_RUNS:
        append_run(runs, flags, 1, at_ns)
    else:
        runs.is_cut = True
    return 0


cdef inline bint may_bear_token(int64_t flags) noexcept:
    """Return whether an event without text may yet prove to bear a token."""
    if flags & (TOKENS | CUMULATIVE) or not flags & CHOICE:
        return False
    return flags & BARE or (flags & (EMPTY | FINISH) and not flags & ROLE)


cdef inline void mark_silent_runs(EventRuns *runs, const int64_t *tokens,
                                  Py_ssize_t events) noexcept:
    """Add the flag SILENT to the listed events that have proved to bear a token, and join equal
    runs.

    Args:
        tokens: Those of each of the `events` that bear a token, or only might have.
    """
    cdef Py_ssize_t i, event = 0, kept = 0
    cdef EventRun run
    for i in range(runs.count):
        run = runs.list[i]
        if run.flags & TOKENS:
            event += run.count
        elif may_bear_token(run.flags):
            if event < events and tokens[event] > 0:
                run.flags |= SILENT
            event += 1
        if kept and run.flags & TOKENS and runs.list[kept - 1].flags == run.flags:
            runs.list[kept - 1].count += run.count
        else:
            runs.list[kept] = run
            kept += 1
    runs.count = kept


cdef inline void mark_last_run(EventRuns *runs) noexcept:
    """Add the flag SILENT to the listed event with the finish reason, which has proved to bear a
    token.
    """
    cdef Py_ssize_t i
    for i in range(runs.count - 1, -1, -1):
        if runs.list[i].flags & FINISH and may_bear_token(runs.list[i].flags):
            runs.list[i].flags |= SILENT
            runs.list[i].count = 1
            return


cdef inline bint is_complete(const EventRuns *runs, int64_t events) noexcept:
    """Return whether the runs hold all of so many token-bearing events."""
    cdef int64_t listed = 0
    for i in range(runs.count):
        if runs.list[i].flags & TOKENS:
            listed += runs.list[i].count
    return not runs.is_cut and listed == events
