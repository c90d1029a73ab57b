# cython: language_level=3
"""Whether connections that are kept hold threads of a server that requests wait for.

A server that gives each connection a thread answers nobody else on it while the connection is open.
A request on a new connection without a byte of a response, for PATIENCE times as long as any other
has taken, may wait for such a thread: if a request that was sent later on a kept connection has
been answered, or if connections are idle and all requests in flight wait like this one. Else the
server is slow. Where it may wait so, no connection is kept until it is answered. If its response
begins soon after the first of them was closed, the guess was true; after PROOF of them, less those
that were not, none is kept any more. Slow responses alone are no sign: with them as one, 969 of 1,000
requests to a slow simulator opened a connection.
"""

cimport cython
from libc.stdint cimport int64_t

from loadgen.core.record cimport Record

cdef enum:
    PATIENCE = 3
    PROOF = 2  # so many more of the guesses have come true than have not

LEAST_PATIENCE_NS = 50_000_000
FIRST_PATIENCE_NS = 5_000_000_000  # before any request was answered


@cython.final
cdef class ServerThreads:
    """What requests on new connections have shown of a server's threads.

    Args:
        most_patience_ns: For how long a request may wait for its first byte before idle connections
            are closed, at most; 0: no limit.

    Attributes:
        starved: Requests that waited for a thread that a kept connection held.
        are_held: Whether kept connections hold threads that requests wait for.
        keeps_none: Whether no connection is to be kept now.
        answers_several: Whether the server has answered two connections at once.
    """

    def __init__(self, int64_t most_patience_ns=0):
        self._most_patience_ns = most_patience_ns or 1 << 62
        self._unanswered = []

    cpdef sent(self, Record record):
        """Watch a request that was sent on a connection that has carried no other."""
        self._unanswered.append(record)

    cpdef ended(self, Record record, int64_t at_ns):
        """Learn from a request that has ended at `at_ns`, before its connection is kept or not."""
        cdef int64_t since_ns
        if self._freed is not None:
            self._freed_ns = self._freed_ns or at_ns
            self._see_freed(at_ns)
        if record.reused and record.first_byte:
            if not self._latest_ns:
                self._longest_ns = 0
            self._latest_ns = max(self._latest_ns, record.sent)
        if record.reused or not self._latest_ns:
            since_ns = max(record.sent, self._freed_ns)  # without a wait for a thread
            self._longest_ns = max(self._longest_ns, record.first_byte - since_ns)

    def look(self, idle_ns, Py_ssize_t in_use, int64_t at_ns):
        """Look whether a request seems to wait for a thread that an idle connection holds.

        Args:
            idle_ns: Since when the oldest idle connection has been idle; None: there is none.
            in_use: How many connections carry requests.
            at_ns: Now.

        Returns:
            Whether to close the idle connections, and after how long to look again, ns; 0: not
            before the next request on a new connection.
        """
        cdef int64_t patience_ns, since_ns, sent_ns, left_ns
        cdef Record first
        self._see_freed(at_ns)
        self._drop_answered()
        if self.are_held:
            return True, 0
        if self._freed is not None:
            return True, LEAST_PATIENCE_NS
        if not self._unanswered:
            return False, 0
        patience_ns = max(PATIENCE * self._longest_ns, LEAST_PATIENCE_NS)
        if not self._longest_ns:
            patience_ns = FIRST_PATIENCE_NS
        first = self._unanswered[0]
        since_ns = sent_ns = first.sent
        if self._latest_ns <= sent_ns:
            if idle_ns is None or in_use > len(self._unanswered):
                return False, LEAST_PATIENCE_NS
            since_ns = max(sent_ns, <int64_t>idle_ns)
        left_ns = since_ns + min(patience_ns, self._most_patience_ns) - at_ns
        if left_ns > 0:
            return False, min(left_ns, LEAST_PATIENCE_NS)
        self._freed = self._unanswered.pop(0)
        self._freed_ns = 0 if idle_ns is None else at_ns
        self.keeps_none = True
        # With nothing else to do, the server has no other reason.
        self._weight = PROOF if in_use == 1 else 1
        return True, LEAST_PATIENCE_NS

    cdef int _see_freed(self, int64_t at_ns) except -1:
        """Learn from whether the response began soon after a connection was closed for it."""
        cdef Record freed = self._freed
        cdef int64_t soon_ns
        if freed is None:
            return 0
        soon_ns = max(self._longest_ns, LEAST_PATIENCE_NS)
        if 0 < self._freed_ns < freed.first_byte <= self._freed_ns + soon_ns:
            self.starved += 1
            self._proof += self._weight
            self.are_held = self._proof >= PROOF
        elif freed.first_byte or freed.outcome is not None or 0 < self._freed_ns < at_ns - soon_ns:
            self._proof = max(self._proof - 1, 0)
        else:
            return 0
        self._freed = None
        self.keeps_none = self.are_held
        return 0

    cdef int _drop_answered(self) except -1:
        """Watch no longer those that have been answered, or have failed."""
        cdef list waiting = []
        cdef Record record
        for record in self._unanswered:
            if record.first_byte:
                if self._answered is not None and _overlap(record, self._answered):
                    self.answers_several = True
                self._answered = record
            elif record.outcome is None:
                waiting.append(record)
        self._unanswered = waiting
        return 0


cdef bint _overlap(Record one, Record other) noexcept:
    """Return whether two responses were under way at the same time."""
    cdef int64_t begun_ns = max(one.first_byte, other.first_byte)
    return (
        (one.outcome is None or one.closed > begun_ns)
        and (other.outcome is None or other.closed > begun_ns)
    )
