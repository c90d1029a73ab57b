# cython: language_level=3
"""Planned streams: events written at set times, each with that time and the time at which it is
written.
"""
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free

from loadgen.core.c.kernel cimport now_ns
from loadgen.core.c.digits cimport PLACES
from loadgen.core.c.memory cimport BYTES, COUNTING, count_freed, live_count
from loadgen.engines.sim.heap cimport pop, postpone, push
from loadgen.engines.sim.outlet cimport Outlet, put_bytes, reserve, scratch

cdef enum:
    TURN_NS = 1000000  # after writing for so long in one go, requests get to be read

BLANK_TIME = b" " * PLACES  # JSON allows blanks before a number, not zeros


cdef inline void put_time(char *out, int64_t at_ns) noexcept:
    """Write a time, ns >= 0, over a BLANK_TIME."""
    cdef int i = PLACES
    while True:
        i -= 1
        out[i] = b"0"[0] + at_ns % 10
        at_ns //= 10
        if at_ns == 0:
            return


def live():
    """Return the bytes that this module has allocated; None unless it is a debug build."""
    return {"bytes": live_count(BYTES)} if COUNTING else None


cdef class Planned(Outlet):
    """One response body whose events are written at set times, each with that time and the one at
    which it is written.

    Args:
        transport: As an `Outlet`'s.
        event: One event as it goes out, but with BLANK_TIME where its planned time goes, and
            further on its own.
        after: What follows the last event at once.
        plan_ns: When each event is due, CLOCK_MONOTONIC ns, sorted; shape (n,), n >= 1.
        write_ns: Filled with when each was given to the socket, read just before; shape (n,).
        written_ns: Filled with when the socket had taken each, read just after; shape (n,).
        limit: As an `Outlet`'s.

    Attributes:
        written: Events written so far.
    """

    def __init__(self, transport, bytes event not None, bytes after not None,
                 const int64_t[::1] plan_ns not None,
                 int64_t[::1] write_ns not None, int64_t[::1] written_ns not None, *,
                 Py_ssize_t limit=4 << 20):
        Outlet.__init__(self, transport, limit=limit)
        self._plan, self._writes, self._written = plan_ns, write_ns, written_ns
        if not 0 < plan_ns.shape[0] == write_ns.shape[0] == written_ns.shape[0]:
            raise ValueError("plan_ns, write_ns and written_ns: must have one length, 1 or more")
        self._event, self._after = event, after
        self._plan_at = event.index(BLANK_TIME)
        self._write_at = event.index(BLANK_TIME, self._plan_at + PLACES)
        reserve(len(event) + len(after))

    cdef int64_t _write_next(self) except -1:
        """Write the next event; returns when that was."""
        cdef char *out = put_bytes(scratch, self._event)
        cdef int64_t at_ns
        put_time(scratch + self._plan_at, self._plan[self.written])
        if self.written + 1 == self._plan.shape[0]:
            out = put_bytes(out, self._after)
        at_ns = now_ns()
        put_time(scratch + self._write_at, at_ns)
        self._writes[self.written] = at_ns
        self.written += 1
        self._send(scratch, out - scratch)
        self._written[self.written - 1] = now_ns()
        return at_ns


cdef class Ticker:
    """Writes what many `Planned` streams have due.

    Args:
        on_end: Called as on_end(stream) after a stream's last event, or when an event is due of one
            that has closed.
    """

    def __init__(self, on_end):
        self._on_end = on_end

    def __dealloc__(self):
        while self._heap.size:
            self._heap.size -= 1
            Py_DECREF(<Planned>self._heap.entries[self._heap.size].item)
        count_freed(self._heap.entries)
        free(self._heap.entries)

    def add(self, Planned stream not None):
        """Take on a stream; returns when the next event of all is due, ns."""
        push(&self._heap, stream._plan[0], <void *>stream)
        Py_INCREF(stream)
        return self._heap.entries[0].at_ns

    def tick(self):
        """Write the events that are due, for a millisecond at most; returns when the next one
        is, ns, or 0: never.
        """
        cdef Planned stream
        cdef int64_t at_ns = now_ns(), ends_ns = at_ns + TURN_NS
        while self._heap.size and self._heap.entries[0].at_ns <= at_ns <= ends_ns:
            stream = <Planned>self._heap.entries[0].item
            if stream._fd >= 0:
                at_ns = stream._write_next()
            if stream._fd >= 0 and stream.written < stream._plan.shape[0]:
                postpone(&self._heap, stream._plan[stream.written], <void *>stream)
            else:
                pop(&self._heap)
                Py_DECREF(stream)  # ours remains
                self._on_end(stream)
        return self._heap.entries[0].at_ns if self._heap.size else 0
